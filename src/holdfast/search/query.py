"""A query, and what it asks for: its words, its times, and whether it asks for a time."""

import re
from typing import NamedTuple

from holdfast.search.analysis import terms_of
from holdfast.search.stop_words import QUESTION_WORDS, STOP_WORDS
from holdfast.search.time_expressions import TimeRange, asks_for_time, find_times
from holdfast.text.words import split_words

MAX_QUERY_CHARS = 5_000
"""How much of a query is searched for."""
MAX_QUERY_WORDS = 32
"""Different words that are searched for."""


_ASSISTANT = re.compile(
    r"\b(?:you|(?:the|your) (?:assistant|agent|bot|model|tool)|assistant)\b[^.!?]{0,40}"
    r"\b(?:advi[sc]e|answer|explain|found|gave|give|list|mention|propose|recommend|return|said|say|suggest|tell|wrote)"
    r"|[你您][^。！？]{0,20}(?:建议|推荐|说|提)",  # noqa: RUF001
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{1,40}(?![A-Za-z])")


class Query(NamedTuple):
    text: str
    words: list[str]
    """The words that are searched for, without stop words. An identifier is there whole and in pieces."""
    mentioned: frozenset[str]
    """All words, to recognise the names of speakers."""
    names: list[str]
    """Words that are written as names, in lower case."""
    identifiers: list[str]
    """Words with digits or punctuation, such as `config.yaml` and `4711`, that are not part of a time."""
    times: list[TimeRange]
    asks_for_time: bool
    asks_assistant: bool
    """Whether it asks what an assistant or a tool said."""


def parse_query(text: str, now: int) -> Query:
    """Parse a query that is asked at `now`, in microseconds since 1970.

    >>> parse_query("Where did they put config.yaml?", 0).words
    ['put', 'config', 'yaml', 'config.yaml']
    """
    text = text[:MAX_QUERY_CHARS]
    words = list(dict.fromkeys(terms_of(text)))
    times = find_times(text, now)
    telling = [word for word in words if word not in STOP_WORDS and word not in QUESTION_WORDS]
    return Query(
        text=text,
        words=(telling or words)[:MAX_QUERY_WORDS],
        mentioned=frozenset(words),
        names=list(dict.fromkeys(match[0].lower() for match in _NAME.finditer(text)))[:MAX_QUERY_WORDS],
        identifiers=_find_identifiers(text, telling, times)[:MAX_QUERY_WORDS],
        times=times,
        asks_for_time=asks_for_time(text),
        asks_assistant=_ASSISTANT.search(text) is not None,
    )


def _find_identifiers(text: str, words: list[str], times: list[TimeRange]) -> list[str]:
    """Return the identifiers among the words: of `ORD-4711` only the whole, and not its pieces."""
    of_times = {word for time in times for word in terms_of(text[time.start : time.end])}
    found = [word for word in words if not word.isalpha() and word not in of_times]
    pieces = {piece for word in found for piece in split_words(word.replace("_", " ")) if piece != word}
    return [word for word in found if word not in pieces]


def without_speakers(query: Query, speakers: frozenset[str]) -> Query:
    """Return the query without the names of speakers: they tell who said something, not what was said."""
    words = [word for word in query.words if word not in speakers]
    names = [name for name in query.names if name not in speakers]
    return query._replace(words=words or query.words, names=names)
