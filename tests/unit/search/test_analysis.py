"""The terms of texts and queries: identifiers, scripts without spaces, stems, and what a query asks for."""

import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.search.analysis import ASKS, MAX_DATES, MAX_TERMS, analyse, terms_of
from holdfast.search.query import MAX_QUERY_CHARS, MAX_QUERY_WORDS, parse_query, without_speakers
from holdfast.search.speakers import speaker_of
from holdfast.search.stems import stem
from holdfast.testing.timing.growth import growth_problem
from holdfast.testing.timing.hostile_values import TEXTS

DAY = 86_400_000_000
NOW = 20_000 * DAY


@pytest.mark.parametrize(
    ("text", "whole", "pieces"),
    [
        ("see config.yaml", {"config.yaml"}, {"config", "yaml"}),
        ("the refresh_token expired", {"refresh_token"}, {"refresh", "token"}),
        ("order ORD-4711 is late", {"ord-4711"}, {"ord", "4711"}),
        ("src/app/main.py:12 fails", {"src/app/main.py:12"}, {"src", "app", "main", "py", "12"}),
        ("mail ann@example.org", {"ann@example.org"}, {"ann", "example", "org"}),
        ("Python 3.11.", {"3.11"}, {"python", "3", "11"}),
    ],
)
def test_an_identifier_is_there_whole_and_in_pieces(text: str, whole: set[str], pieces: set[str]) -> None:
    assert whole | pieces <= set(terms_of(text))


def test_an_identifier_ends_before_punctuation_and_has_a_maximum_length() -> None:
    assert "config.yaml" in terms_of("It is in config.yaml.")
    assert [term for term in terms_of("a.b, c") if "." in term] == ["a.b"]
    assert not [term for term in terms_of(".".join("a" * 200)) if "." in term]


def test_accents_and_case_do_not_matter_and_each_character_of_a_script_without_spaces_is_a_term() -> None:
    assert terms_of("CAFÉ Ärger") == ["cafe", "arger"]
    assert {"狐", "狸"} <= set(terms_of("狐狸 fox"))


def test_a_document_asks_if_it_has_a_question_mark_of_any_script() -> None:
    assert [analyse(text, NOW).flags for text in ("why?", "为什么？", "because")] == [ASKS, ASKS, 0]


def test_the_dates_of_a_text_are_relative_to_its_own_time_and_limited() -> None:
    assert analyse("I saw her yesterday.", NOW).dates == [(19_999, 19_999)]
    assert analyse("nothing", NOW).dates == []
    many = " ".join(f"on {day} March 2024," for day in range(1, 31))
    assert len(analyse(many, NOW).dates) == MAX_DATES


def test_a_long_document_has_a_limited_number_of_terms() -> None:
    assert len(terms_of("word " * 10_000)) == MAX_TERMS


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
@example("İ.ß ﬀ_x e\u0301 ")
def test_terms_can_be_stored_with_spaces_between_them(text: str) -> None:
    terms = terms_of(text)
    assert " ".join(terms).split() == terms
    assert terms == [term.lower() for term in terms]


@given(st.text(string.ascii_lowercase, max_size=15))
def test_a_stem_is_a_short_beginning_of_the_word_or_ends_with_y(word: str) -> None:
    found = stem(word)
    assert len(found) <= len(word)
    assert word.startswith((found, found.removesuffix("y")))
    assert found or not word


@pytest.mark.parametrize(
    "words",
    [
        ("paint", "paints", "painted", "painting", "paintings"),
        ("story", "stories"),
        ("carry", "carries", "carried"),
        ("plan", "planned", "planning"),
        ("quick", "quickly"),
        ("class", "classes"),
        ("call", "called", "calling"),
    ],
)
def test_forms_of_a_word_have_one_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize(
    "word", ["bus", "this", "thing", "red", "4711", "config.yaml", "狐狸", "straße", "ord-4711", ""]
)
def test_short_words_numbers_and_identifiers_are_their_own_stems(word: str) -> None:
    assert stem(word) == word


def test_a_query_is_searched_without_stop_words_unless_it_has_no_others() -> None:
    assert parse_query("What did you say about the boat?", NOW).words == ["say", "boat"]
    assert parse_query("to be or not to be", NOW).words == ["to", "be", "or", "not"]
    assert parse_query("!? --- …", NOW).words == []


def test_a_query_has_a_maximum_of_characters_and_of_different_words() -> None:
    query = parse_query(" ".join(f"w{number}" for number in range(5_000)), NOW)
    assert (len(query.text), len(query.words)) == (MAX_QUERY_CHARS, MAX_QUERY_WORDS)
    assert parse_query("boat " * 50, NOW).words == ["boat"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did you recommend for dinner?", True),
        ("Which hotel did the assistant suggest?", True),
        ("你建议我吃什么", True),
        ("What did Ann recommend?", False),
        ("What do I eat for dinner?", False),
        ("Do you know my name?", False),
    ],
)
def test_a_query_may_ask_what_the_assistant_said(text: str, expected: bool) -> None:
    assert parse_query(text, NOW).asks_assistant is expected


def test_a_query_knows_the_times_and_the_names_in_it() -> None:
    query = parse_query("When did Ann meet Bob yesterday?", NOW)
    assert query.asks_for_time
    assert [(time.first_day, time.last_day) for time in query.times] == [(19_999, 19_999)]
    assert query.names == ["ann", "bob"]


def test_identifiers_of_a_query_are_whole_and_are_no_times() -> None:
    query = parse_query("Is ORD-4711 or refresh_token or 8823 in config.yaml since 7 May 2023?", NOW)
    assert query.identifiers == ["8823", "ord-4711", "refresh_token", "config.yaml"]
    assert parse_query("a boat", NOW).identifiers == []


def test_names_of_speakers_are_not_searched_for_unless_nothing_else_is_left() -> None:
    query = parse_query("did Ann and Bob buy a boat", NOW)
    assert (without_speakers(query, frozenset({"ann"})).words, without_speakers(query, frozenset({"ann"})).names) == (
        ["bob", "buy", "boat"],
        ["bob"],
    )
    assert without_speakers(parse_query("Ann", NOW), frozenset({"ann"})).words == ["ann"]


@pytest.mark.parametrize(
    ("peer_id", "text", "speaker"),
    [
        ("Ann", "Bob: hello", "ann"),
        (None, "Bob: hello", "bob"),
        (None, "Maria de Lopez: hello", ""),
        (None, "Note that: hello", ""),
        (None, "http://x", ""),
        (None, "Bob:hello", ""),
        (None, "李: 你好", ""),
        (None, ": hello", ""),
        (None, "", ""),
        ("", "Bob: hello", "bob"),
    ],
)
def test_who_speaks_is_the_peer_or_the_name_at_the_beginning(peer_id: str | None, text: str, speaker: str) -> None:
    assert speaker_of(peer_id, text) == speaker


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_are_analysed_in_linear_time(name: str) -> None:
    def prepare(function: Callable[[str, int], Any]) -> Callable[[int], Callable[[], Any]]:
        def of_size(size: int) -> Callable[[], Any]:
            text = TEXTS[name](size)
            return lambda: function(text, NOW)

        return of_size

    assert not growth_problem(prepare(analyse), 25_000, floor_seconds=0.02)
    assert not growth_problem(prepare(parse_query), 25_000, floor_seconds=0.02)
