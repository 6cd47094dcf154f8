"""Ranges of the East Asian scripts, for the character classes of regular expressions.

Each range has one definition here. Modules combine the ranges that their rule is about: an index that splits
characters, for example, must not split Korean, which has spaces.
"""

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
"""Chinese characters: the main block and extension A."""
HAN_AND_HEXAGRAMS = "\u3400-\u9fff"
"""Chinese characters and the 64 hexagram symbols between the two blocks of `HAN`.

Patterns that recognise Chinese prose and its borders use this range. It differs from `HAN` only in texts with such
symbols, whose summaries must not change.
"""
HAN_COMPATIBILITY = "\uf900-\ufaff"
"""Second encodings of Chinese characters, which older texts contain."""
KANA = "\u3040-\u30ff"
"""Japanese syllables: hiragana and katakana."""
HANGUL = "\uac00-\ud7af"
"""Korean syllables."""

UNSPACED = f"{KANA}{HAN}{HAN_COMPATIBILITY}"
"""Scripts without spaces between words. The text index stores each of these characters as a word."""
PAIRED = f"{HAN}{KANA}{HANGUL}"
"""Scripts whose words are compared by pairs of characters.

Unlike `UNSPACED` it includes Korean, whose endings are not separated by spaces, and excludes compatibility characters,
which are compared as words.
"""

FIRST_WIDE = "\u2e80"
"""The first East Asian character. It and most later ones are displayed wide and cost more tokens than a letter."""
