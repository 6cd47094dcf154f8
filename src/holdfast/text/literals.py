"""Literals of a sentence, which a summary must copy exactly: ids, paths, URLs, amounts, dates, errors and names."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from typing import NamedTuple

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CURRENCY = "USD|EUR|GBP|CNY|RMB|JPY|CHF"
_UNIT = (
    "%|‰|°C|ms|µs|us|ns|s|secs?|seconds?|mins?|minutes?|hours?|hrs?|h|days?|weeks?|months?|years?"
    "|[kKMGT]i?B|bytes|kg|km|rps|qps|tps|x|万元|亿元|毫秒|秒钟?|分钟|小时|个月|[万亿千百]?[元块个台次秒天周年条行人单件份页家户倍]|[万亿]"
)
_AMOUNT = r"\d[\d,]*(?:\.\d+)?"
_SEGMENT = r"[\w.@%+\-{}*$]+"
_SUFFIXES = (
    "py|js|ts|tsx|jsx|go|rs|java|kt|rb|php|c|h|cc|cpp|cs|sh|sql|md|txt|rst|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf"
    "|env|log|xml|html|css|pdf|png|jpe?g|svg|xlsx?|docx?|pptx?|parquet|gz|zip|tar|lock|ipynb|proto|tf|db|sqlite|pem|bak"
)

_PATTERNS = {
    "quoted": r"`[^`]{1,80}`|\"[^\"]{2,60}\"|“[^”]{1,60}”|「[^」]{1,60}」|《[^》]{1,60}》",
    "url": r"[A-Za-z][A-Za-z0-9+.\-]{1,12}://[^\s<>\"'`，。；、）)\]}|]+",
    "email": r"\b[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+",
    "path": (
        rf"(?<![\w/.])(?:~|\.{{1,2}})?(?:/{_SEGMENT})+/?(?::\d+)?|\b[A-Za-z]:\\[\w\\.\-]+"
        rf"|\b(?:[\w.\-]+/)+[\w\-.]*\w(?::\d+)?|\b[\w\-]+(?:\.[\w\-]+)*\.(?:{_SUFFIXES})\b(?::\d+)?"
    ),
    "date": (
        r"\b\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?Z?)?"
        r"|\b\d{4}年(?:\d{1,2}月)?(?:\d{1,2}[日号])?|\b\d{1,2}月(?:\d{1,2}[日号]|份)"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH}(?:\s\d{{4}})?\b|\b{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}})?"
    ),
    "time": (
        r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:\s?[ap]\.?m\b)?(?:\s?UTC)?|\b\d{1,2}\s?[ap]m\b|\b\d{1,2}[点时](?:\d{1,2}分|半)?"
    ),
    "money": (
        rf"(?:[$€£¥￥]|\b(?:{_CURRENCY})\s?){_AMOUNT}[kKmM]?"
        rf"|\b{_AMOUNT}\s?(?:(?:{_CURRENCY}|dollars|euros|pounds|yuan)\b|[€£¥]|[万亿]?元)"
    ),
    "ip": r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?\b",
    "error": (
        r"\b\w*(?:Error|Exception|Timeout|Refused|Denied)\b|\bE[A-Z]{5,}\b|\bHTTP(?:/\d\.\d)? ?[45]\d\d\b"
        r"|\bexit (?:code|status) \d+|\bSQLSTATE \w+|\bSIG[A-Z]{3,}\b|\bCVE-\d+-\d+"
    ),
    "version": r"\bv?\d+\.\d+\.\d+(?:[\-.+][\w.]+)?|\bv\d+(?:\.\d+)*\b",
    "measure": rf"[+\-]?\b{_AMOUNT}\s?(?:(?:{_UNIT})(?![A-Za-z]))",
    "id": r"\b(?=[A-Za-z_\-]{0,40}\d)(?=[\d_\-]{0,40}[A-Za-z])\w+(?:[\-:.]\w+)*|#\d+\b|\b\d+(?:-\d+){1,6}\b",
    "ident": (
        r"\b[A-Za-z]\w*_\w+(?:\.\w+)*(?:\(\))?|\b[a-z]+[A-Z]\w+(?:\(\))?|\b[A-Za-z_]\w*\(\)"
        r"|\b[a-z]\w*(?:-\w+)*(?:\.[a-z]\w*(?:-\w+)*)+|\b[a-z]\w+-[a-z]\w+-\w+\b|\B--?[a-z][\w\-]+"
    ),
    "number": rf"[+\-]?\b{_AMOUNT}",
    "name": (
        r"我[姓叫][^。！？；]{1,16}|(?:姓名|名字)[是:： ]*[^\s，。！？；]{1,12}"
        r"|(?<=[a-z0-9,;:)] )[A-Z][a-z]+(?:[ \-][A-Z][a-z]+)*|(?<=[a-z0-9,;:)] )[A-Z]{2,}[a-z]?\b"
    ),
}
# Most words are plain. The patterns are tried only where a word begins that can be a literal.
_START = (
    r"(?<![A-Za-z0-9_])(?=[0-9`\"“「《$€£¥￥#~./+\-]|[a-z]+(?:[A-Z0-9_@(\\]|[./:+\-][\w/])|[A-Z](?![a-z]+(?:\s|[,.]\s))"
    rf"|(?<=[a-z0-9,;:)] )[A-Z]|{_MONTH}\s\d|exit |我[姓叫]|姓名|名字)"
)
_LITERAL = re.compile(
    f"{_START}(?:{'|'.join(f'(?P<{kind}>{pattern})' for kind, pattern in _PATTERNS.items())})", re.ASCII
)
_TRAILING_PUNCTUATION = ".,;:!?"
_QUOTES = '`"“”「」《》'
_NOT_LITERALS = frozenset(
    {"FATAL", "ERROR", "INFO", "WARN", "WARNING", "DEBUG", "SELECT", "FROM", "WHERE", "NOT", "NULL", "AND", "OR"}
    | {"ID", "IDs", "AM", "PM", "OK", "FAQ", "Mr", "Mrs", "Ms", "Dr"}
)
_PLAIN_WORDS = re.compile(r"[a-z ]+")

IMPORTANCE = {
    "url": 1.2,
    "email": 1.4,
    "path": 1.3,
    "date": 1.2,
    "time": 1.0,
    "money": 1.4,
    "ip": 1.3,
    "error": 1.2,
    "version": 1.3,
    "measure": 1.1,
    "id": 1.4,
    "ident": 0.7,
    "number": 0.8,
    "quoted": 0.6,
    "name": 0.6,
}
"""Weight of each kind of literal in the choice of facts."""


class Literal(NamedTuple):
    text: str
    kind: str
    start: int
    end: int
    key: str
    """The text without commas, so that 1,386 and 1386 are equal."""


def find_literals(text: str, before: int | None = None) -> list[Literal]:
    """Return the literals of a sentence in order, without overlaps, or only those that start before `before`.

    >>> [(literal.text, literal.kind) for literal in find_literals("Port 5433 of db-1.internal; see /etc/app.conf.")]
    [('5433', 'number'), ('db-1.internal', 'id'), ('/etc/app.conf', 'path')]
    """
    literals: list[Literal] = []
    for match in _LITERAL.finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span()
        if before is not None and start >= before:
            break
        literal = match.group()
        if kind == "quoted":
            literal = literal.strip(_QUOTES)
            kind = _kind_of_quoted(literal)
        elif literal[-1] in _TRAILING_PUNCTUATION:
            literal = literal.rstrip(_TRAILING_PUNCTUATION)
            end = start + len(literal)
        if literal and literal not in _NOT_LITERALS:
            literals.append(Literal(literal, kind, start, end, literal.replace(",", "")))
    return literals


def _kind_of_quoted(text: str) -> str:
    """Return the kind of a quoted text: an id in backticks is an id."""
    if _PLAIN_WORDS.fullmatch(text):
        return "quoted"
    match = _LITERAL.match(text)
    return match.lastgroup or "quoted" if match and match.end() == len(text) else "quoted"
