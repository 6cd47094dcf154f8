"""`holdfast find` and `holdfast search`, on an embedded database and through a real server."""

from collections.abc import Callable
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]
TURNS = (
    '[{"role":"user","content":"We fly to Lisbon on Friday with the early plane."},'
    '{"role":"assistant","content":"Shall I book a hotel near the river?"},'
    '{"role":"user","content":"Yes, the Casa Azul,\\nbut without breakfast."}]'
)


@pytest.fixture(autouse=True)
def conversation(cli_ok: Cli) -> None:
    cli_ok("session", "add-messages", "trip", TURNS)


def test_hits_are_a_table_with_scores_and_one_line_of_text_each(cli_ok: Cli) -> None:
    head, best, *_ = cli_ok("search", "Casa Azul breakfast").out.splitlines()
    assert head.split() == ["score", "where", "time", "text"]
    score, place, *_ = best.split()
    assert 0 < float(score) <= 1
    assert place == "trip#3"
    assert best.endswith("user: Yes, the Casa Azul, but without breakfast.")


def test_reasons_are_bars_that_add_up_to_the_score(cli_ok: Cli) -> None:
    lines = cli_ok("search", "Casa Azul breakfast", "--why", "--limit", "1", "--type", "message").out.splitlines()
    score = float(lines[1].split()[0])
    shares = [float(line.split()[1]) for line in lines[2:]]
    assert sum(shares) == pytest.approx(score, abs=0.05)
    assert any("█" in line or "#" in line for line in lines[2:])
    assert "words" in [line.split()[0] for line in lines[2:]]


def test_json_is_the_result_of_the_client(cli_ok: Cli, client: holdfast.Client) -> None:
    result = client.search("Casa Azul", limit=1)
    printed = cli_ok("search", "Casa Azul", "--limit", "1", "--json").json
    assert printed.keys() == result.to_dict().keys()
    assert [hit["uri"] for hit in printed["messages"]] == [hit.uri for hit in result.messages]
    assert cli_ok("search", "Casa Azul", "-o", "jsonl").jsonl[0]["uri"] == result.messages[0].uri
    assert cli_ok("find", "Casa Azul", "-o", "json").json == client.find("Casa Azul").to_dict()


def test_a_search_without_hits_says_so(cli_ok: Cli) -> None:
    done = cli_ok("search", "xylophone", "--target", "viking://session/other")
    assert (done.out, done.err) == ("", "Nothing was found for 'xylophone'.\n")
    done = cli_ok("find", "hotel")
    assert done.out == ""
    assert "`holdfast search` also searches messages" in done.err


def test_a_session_completes_the_query_and_the_context_is_text_for_a_prompt(cli_ok: Cli) -> None:
    cli_ok("session", "add-message", "now", "--role", "user", "--content", "Which hotel is it? The Casa Azul?")
    done = cli_ok("search", "Where is it?", "--session", "now", "--context", "--target", "viking://session/trip")
    assert done.out.startswith("<recalled ")
    assert done.out.endswith("</recalled>\n")
    assert "Casa Azul" in done.out
    assert "Searched for: Where is it? " in done.err
    assert cli_ok("search", "Casa", "--context", "--json").json["stats"]["max_tokens"] == 2_000


def test_a_search_can_be_limited_by_time_and_address(cli_ok: Cli) -> None:
    assert "trip#3" in cli_ok("search", "Casa Azul", "--since", "1d", "--target", "viking://session/trip").out
    assert cli_ok("search", "Casa Azul", "--until", "1d").out == ""


def test_a_mistake_is_one_sentence(cli: Cli) -> None:
    done = cli("search", "Casa Azul", "--since", "soon")
    assert done.code == 1
    assert done.err.startswith("error: since: 'soon' is not a time; use an age such as 7d")
    assert done.err.count("\n") == 1
