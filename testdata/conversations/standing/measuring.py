"""Measures how many standing rules and preferences are kept word for word, and which other lines are kept."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from conversations.messages import as_messages
from conversations.standing import StandingConversation
from holdfast.client.sync.client import Client
from holdfast.summary.rules import StandingRules, extract_rules, merge_rules

PIECE_COUNTS = (1, 4, 10)
MAX_LINE_CHARS = 200


class KeptRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that were kept of conversations, each of which was committed in `pieces` pieces."""

    pieces: int
    expected: int
    kept: int
    longest: int
    missed: list[str]
    false: list[str]
    """Lines that were kept but are no rule, are withdrawn, or contain a question."""


LinesOf = Callable[[StandingConversation, int], list[str]]


def measure_kept_rules(conversations: Sequence[StandingConversation], pieces: int, lines_of: LinesOf) -> KeptRules:
    """Compare the rules that `lines_of` returns for each conversation and number of pieces with the expected ones."""
    missed: list[str] = []
    false: list[str] = []
    longest = 0
    for conversation in conversations:
        lines = lines_of(conversation, pieces)
        longest = max([longest, *map(len, lines)])
        short = [line for line in lines if len(line) <= MAX_LINE_CHARS]
        missed += [f"{conversation.name}: {clause}" for clause in conversation.keep if not _is_in(clause, short)]
        false += [f"{conversation.name}: {line}" for line in lines if _is_false(line, conversation)]
    expected = sum(len(each.keep) for each in conversations)
    return KeptRules(
        pieces=pieces, expected=expected, kept=expected - len(missed), longest=longest, missed=missed, false=false
    )


def extract_in_pieces(conversation: StandingConversation, pieces: int) -> list[str]:
    """Extract the rules of consecutive pieces of a conversation and merge them."""
    messages = as_messages(*conversation.messages)
    borders = [len(messages) * number // pieces for number in range(pieces + 1)]
    merged = StandingRules()
    for start, end in pairwise(borders):
        merged = merge_rules(merged, extract_rules(messages[start:end], lambda: None))
    return [line.text for line in merged.rules]


def commit_in_pieces(client: Client, conversation: StandingConversation, pieces: int) -> list[str]:
    """Commit consecutive pieces of a conversation to a new session, and return the rules in its context."""
    session = client.session()
    turns = conversation.messages
    for start, end in pairwise([len(turns) * number // pieces for number in range(pieces + 1)]):
        session.add_messages(turns[start:end])
        client.wait_for_task(str(session.commit().task_id))
    return rules_in_overview(session.context().latest_archive_overview)


def rules_in_overview(overview: str) -> list[str]:
    """Return the lines of the constraints sections, without their citations."""
    blocks = [block.splitlines() for block in overview.split("\n\n")]
    rules = [block[1:] for block in blocks if block[0].lstrip("# ") == "Constraints"]
    return [line.removeprefix("- ").rpartition(" [")[0] for lines in rules for line in lines]


def _is_in(clause: str, lines: Sequence[str]) -> bool:
    return any(clause.lower() in line.lower() for line in lines)


def _is_false(line: str, conversation: StandingConversation) -> bool:
    clauses = [*conversation.keep, *conversation.may]
    if "?" in line or any(clause.lower() in line.lower() for clause in conversation.gone):
        return True
    return not any(clause.lower() in line.lower() or line.lower() in clause.lower() for clause in clauses)
