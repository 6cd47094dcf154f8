"""Every regular expression of the package takes linear time on hostile texts."""

import re

import pytest

from holdfast.testing.timing.patterns import PackagePattern, find_patterns, slow_texts

PATTERNS = find_patterns()
CHARS = 3_000
GROUPS = 8


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_pattern_takes_more_than_linear_time_on_a_hostile_text(group: int) -> None:
    problems = [problem for each in PATTERNS[group::GROUPS] if (problem := next(slow_texts(each, CHARS), None))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("source", [r"^\s*```", r"(?:a+)+b", r"(?:ab)*c", r"\s*(?:rule)?\s*$"])
def test_a_pattern_that_backtracks_is_found(source: str) -> None:
    pattern = PackagePattern("here", re.compile(source, re.MULTILINE), frozenset({"search"}))
    assert next(slow_texts(pattern, CHARS), None)
