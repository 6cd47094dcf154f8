"""The ranges of East Asian scripts."""

import re

import pytest

from holdfast.text import scripts


@pytest.mark.parametrize(
    ("ranges", "inside", "outside"),
    [
        (scripts.HAN, "一中鿿㐀", "あ한\uf900\u4dc0a"),
        (scripts.HAN_AND_HEXAGRAMS, "一中鿿㐀\u4dc0", "あ한\uf900a"),
        (scripts.KANA, "あアー", "中한a"),
        (scripts.HANGUL, "한글", "中あa"),
        (scripts.UNSPACED, "中あア\uf900", "한\u4dc0a"),
        (scripts.PAIRED, "中あア한", "\uf900\u4dc0a"),
    ],
    ids=["Han", "Han and hexagrams", "kana", "Hangul", "unspaced", "paired"],
)
def test_a_range_has_the_characters_of_its_scripts_only(ranges: str, inside: str, outside: str) -> None:
    characters = re.compile(f"[{ranges}]")
    assert all(characters.match(character) for character in inside)
    assert not any(characters.match(character) for character in outside)
