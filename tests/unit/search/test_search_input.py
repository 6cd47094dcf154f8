"""Times, addresses and excerpts of searches."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidUriError
from holdfast.model.identity import Principal
from holdfast.ops.search import Search
from holdfast.search.requests.addresses import canonical_address, is_below
from holdfast.search.requests.time_limits import parse_time
from holdfast.search.results.excerpts import excerpt

NOW = datetime(2026, 3, 24, 9, 30, tzinfo=UTC)
ANN = Principal("acme", "ann", internal_id="ann~5f")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("12h", "2026-03-23T21:30:00+00:00"),
        ("7d", "2026-03-17T09:30:00+00:00"),
        ("2w", "2026-03-10T09:30:00+00:00"),
        ("2026-02-28", "2026-02-28T00:00:00+00:00"),
        ("2026-02-28T10:00", "2026-02-28T10:00:00+00:00"),
        ("2026-02-28 10:00:05", "2026-02-28T10:00:05+00:00"),
        ("2026-02-28T10:00:00Z", "2026-02-28T10:00:00+00:00"),
        ("2026-02-28t10:00:00.5z", "2026-02-28T10:00:00.500000+00:00"),
        ("2026-02-28T10:00:00-05:30", "2026-02-28T10:00:00-05:30"),
    ],
)
def test_an_age_a_date_and_a_time_are_understood(text: str, time: str) -> None:
    assert parse_time(text, NOW).isoformat() == time


def test_a_period_that_ends_with_a_date_includes_the_day() -> None:
    assert parse_time("2026-02-28", NOW, is_end=True).isoformat() == "2026-03-01T00:00:00+00:00"


def test_a_period_can_end_with_the_last_day_that_exists() -> None:
    assert parse_time("9999-12-31", NOW, is_end=True).isoformat() == "9999-12-31T23:59:59.999999+00:00"
    assert parse_time("9999-12-31", NOW).isoformat() == "9999-12-31T00:00:00+00:00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "7",
        "7x",
        "-7d",
        "7 d",
        "99999d",
        "2026",
        "2026-02-30",
        "2026-13-01",
        "2026-02-28T",
        "2026-02-28T25:00",
        *["0001-01-01T00:00:00+10:00", "9999-12-31T23:00:00-10:00", "٧d", "2026-02-28" * 40],
    ],
)
def test_other_texts_are_not_times(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text, NOW)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("viking://user/ann/sessions/trip", "viking://user/ann~5f/sessions/trip"),
        ("viking://user/ann~5f/sessions/trip/", "viking://user/ann~5f/sessions/trip"),
        ("viking://session/trip#12", "viking://user/ann~5f/sessions/trip#12"),
        ("viking://~/memories/auth/", "viking://user/ann~5f/memories/auth"),
        ("viking://user/memories/auth", "viking://user/ann~5f/memories/auth"),
        ("viking://agent/memories/auth", "viking://user/ann~5f/memories/auth"),
        ("viking://user/bob/sessions/trip", "viking://user/bob/sessions/trip"),
        ("viking://resources/a%20b/", "viking://resources/a b"),
        ("viking://resources/a b", "viking://resources/a b"),
        ("viking://", "viking://"),
    ],
)
def test_an_address_has_one_form(uri: str, address: str) -> None:
    assert canonical_address(uri, ANN) == address
    assert canonical_address(address, ANN) == address


@pytest.mark.parametrize("uri", ["", "auth", "http://x", "viking://user//x", "viking://a/../b", "viking://%FF"])
def test_what_is_no_address_is_an_error(uri: str) -> None:
    with pytest.raises(InvalidUriError):
        canonical_address(uri, ANN)


def test_an_address_lies_below_its_folders_and_not_below_similar_names() -> None:
    message = "viking://user/ann/sessions/trip#12"
    for folder in ("viking://", "viking://user", "viking://user/ann", "viking://user/ann/sessions/trip", message):
        assert is_below(message, folder)
    for other in ("viking://user/an", "viking://user/ann/sessions/tri", "viking://user/ann/sessions/trip#1"):
        assert not is_below(message, other)


def test_an_excerpt_is_around_the_longest_word_and_not_longer_than_asked_for() -> None:
    text = "a b " * 1_000 + "the harbour of Naxos" + " c d" * 1_000
    short = excerpt(text, ["a", "Naxos"], 100)
    assert "Naxos" in short
    assert short.startswith("[...] ")
    assert short.endswith(" [...]")
    assert len(short) <= 100 + 12
    assert excerpt("short", ["x"], 100) == "short"
    assert excerpt("x" * 500, [], 100) == "x" * 100 + " [...]"
    assert excerpt("İ" * 500 + "naxos", ["naxos"], 100).startswith("[...] ")


@pytest.mark.parametrize(
    ("given", "excluded"),
    [("viking://~/sessions/trip#1", ["viking://~/sessions/trip#1"]), ("", []), (["a", "b"], ["a", "b"]), ([], [])],
)
def test_one_excluded_address_is_a_list_of_one(given: Any, excluded: list[str]) -> None:
    assert msgspec.convert({"query": "ferry", "exclude_uris": given}, Search).exclude_uris == excluded
    assert Search(query="ferry", exclude_uris=given).exclude_uris == excluded
