"""Reading papers to choose a method."""

from conversations.filler import prose
from conversations.script import Conversation, Turn, assistant, failed, tool, user

_PAPERS = [
    ("Sparse retrieval revisited", "2301.04417", 71.2, 38),
    ("Late interaction at scale", "2208.11290", 74.9, 210),
    ("Hybrid scoring without tuning", "2305.90021", 76.3, 64),
    ("Query expansion with small models", "2310.00813", 70.4, 150),
    ("Static vectors are enough", "2402.15577", 72.8, 3),
    ("Learned pooling for long documents", "2311.07702", 73.6, 95),
]


def _papers() -> list[Turn]:
    turns: list[Turn] = []
    for title, arxiv, score, latency in _PAPERS:
        turns += [
            assistant(
                f'Reading "{title}".',
                tool(
                    "fetch_paper",
                    {"arxiv": arxiv},
                    f"{title}. Abstract. We study retrieval on 14 collections. "
                    f"nDCG@10 of {score} at {latency} ms per query. "
                    f"Trained on {latency * 3} million pairs, {latency % 7 + 2} seeds. {prose(14, latency)}",
                ),
            ),
            assistant(f'"{title}" (arXiv {arxiv}) reports {score} nDCG@10 at {latency} ms per query.'),
            user("OK, continue."),
        ]
    return turns


CONVERSATION = Conversation(
    name="research",
    language="en",
    messages=[
        user(
            "I need to choose a retrieval method for our help center. Compare "
            "recent papers on hybrid retrieval and tell me "
            "which one we should build on."
        ),
        user("It must run on CPU with at most 20 ms per query, and the licence has to be MIT or Apache-2.0."),
        assistant("I'll collect candidates and note quality, latency and licence of each."),
        assistant(
            "",
            failed(
                "search_papers", {"query": "hybrid retrieval"}, "RateLimitError: 429 Too Many Requests, retry in 60 s"
            ),
        ),
        assistant("", tool("search_papers", {"query": "hybrid retrieval"}, {"found": 48, "shown": 6})),
        *_papers(),
        user("Which ones satisfy my latency limit?"),
        assistant(
            'Only "Static vectors are enough" (arXiv 2402.15577) with 3 ms is below '
            '20 ms. "Sparse retrieval revisited" needs 38 ms.'
        ),
        user("What about its licence?"),
        assistant("", tool("read_licence", {"repo": "https://github.com/example/static-enough"}, "Apache License 2.0")),
        assistant("The code at https://github.com/example/static-enough is Apache-2.0, so it qualifies."),
        user(
            "We decided to build on static vectors and fuse them with BM25. Our "
            "own evaluation set is in eval/helpcenter_v2.jsonl."
        ),
        assistant(
            "",
            tool(
                "run_eval",
                {"set": "eval/helpcenter_v2.jsonl", "method": "static+bm25"},
                {"ndcg": 0.687, "queries": 412},
            ),
        ),
        assistant(
            "On eval/helpcenter_v2.jsonl (412 queries) the fusion reaches an nDCG@10 of 0.687; BM25 alone has 0.611."
        ),
        user("Never use the test split for tuning, please. Only the dev split."),
        assistant("Understood, tuning will use the dev split only."),
        user("Write a one-page recommendation for the team meeting on 9 June."),
        assistant("", tool("write_file", {"path": "docs/retrieval-recommendation.md"}, "4210 bytes")),
        assistant(
            "The recommendation is in docs/retrieval-recommendation.md. Open "
            "question: whether queries in Norwegian need their "
            "own vectors; I have not tested that yet."
        ),
    ],
    essentials=[
        "at most 20 ms per query",
        "MIT or Apache-2.0",
        "2402.15577",
        "3 ms",
        "https://github.com/example/static-enough",
        "eval/helpcenter_v2.jsonl",
        "0.687",
        "0.611",
        "Never use the test split for tuning",
        "9 June",
        "docs/retrieval-recommendation.md",
    ],
)
