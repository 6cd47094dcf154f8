"""The regular expressions of the package, and texts on which a slow one among them takes long."""

import ast
import importlib
import inspect
import pkgutil
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from re import _parser as sre_parser
from types import ModuleType
from typing import Any

import msgspec

import holdfast
from holdfast.testing.timing.growth import best_time, growth_problem

Pattern = re.Pattern[str] | re.Pattern[bytes]

SCANNING = {"search", "sub", "subn", "split", "findall", "finditer"}
MATCHING = {"match", "fullmatch"}
UNKNOWN = frozenset({"search", "match"})
"""The methods that are assumed for a pattern in a tuple, in a struct or in a type."""
ORDINARY_CHARACTERS = "a \n1.,-_/\"'#{é漢"
MAX_PAIRED = 4
SAMPLES = 6
MAX_SAMPLE_REPEATS = 2


MAX_TEXT_CHARS = {
    "holdfast.summary.rules.splitting": 24_000,
    "holdfast.summary.rules": 1_200,
    "holdfast.text.literals": 1_000,
}
"""The longest text that the patterns of a module see, where it is limited: a sentence of `summary/rules/splitting`, or
of `text/sentences` and what `text/shortening` adds."""
MAX_SECONDS = 0.05
"""How long a pattern may take on the longest text that it sees."""
LINEAR_SECONDS_PER_CHAR = 1e-6
"""Faster than this, a pattern is not slow whatever its growth."""


class PackagePattern(msgspec.Struct, frozen=True):
    place: str
    pattern: Pattern
    methods: frozenset[str]
    """The methods that the package calls on it."""

    def run(self, text: str) -> None:
        """Use the pattern as the package does."""
        subject: Any = text if isinstance(self.pattern.pattern, str) else text.encode("utf-8", "ignore")
        if "match" in self.methods:
            self.pattern.match(subject)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(subject)
        if self.methods & SCANNING:
            for _ in self.pattern.finditer(subject):
                pass


def find_patterns() -> list[PackagePattern]:
    """Return every pattern of the package: in globals, in types and in calls of functions of `re`."""
    modules = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(holdfast.__path__, "holdfast.")
        if not info.name.startswith("holdfast.testing") and not info.name.endswith("__main__")
    ]
    trees = {module.__name__: ast.parse(inspect.getsource(module)) for module in modules}
    methods = _methods_called(trees)
    found: dict[Pattern, PackagePattern] = {}
    for module in modules:
        for line, function, pattern in _patterns_in_calls(module, trees[module.__name__]):
            _add(found, PackagePattern(f"{module.__name__}, line {line}", pattern, frozenset({function})))
        for name, value in vars(module).items():
            scope = module.__name__ if name.startswith("_") else ""
            called = frozenset(methods.get((scope, name), set()) & (SCANNING | MATCHING)) or UNKNOWN
            for pattern in _patterns_in(value, set()):
                _add(found, PackagePattern(f"{module.__name__}.{name}", pattern, called))
    return list(found.values())


def slow_texts(each: PackagePattern, chars: int) -> Iterator[str]:
    """Say on which hostile texts of up to `chars` characters a pattern takes more than linear time.

    A pattern that sees one sentence at most may take longer, but not long: its text has a limit.
    """
    bound = next((chars for prefix, chars in MAX_TEXT_CHARS.items() if each.place.startswith(prefix)), None)
    largest = chars if bound is None else min(chars, bound)
    for prefix, repeated, suffix in hostile_texts(each.pattern):
        problem = _problem(each, prefix, repeated, suffix, largest, is_bounded=bound is not None)
        if problem is not None:
            yield f"{each.place} {each.pattern.pattern!r:.80} on {prefix!r} + n * {repeated!r} + {suffix!r}: {problem}"


def _problem(
    each: PackagePattern, prefix: str, repeated: str, suffix: str, chars: int, *, is_bounded: bool
) -> str | None:
    def prepare(size: int) -> Callable[[], None]:
        text = prefix + (repeated * (size // len(repeated) + 1))[:size] + suffix
        return lambda: each.run(text)

    for size in (22, 40, 100, chars // 4):  # ascending: a pattern that takes exponential time must not run for ever
        if best_time(prepare(size), time.thread_time, enough=MAX_SECONDS) > MAX_SECONDS:
            return f"more than {MAX_SECONDS} s for {size} characters"
    if is_bounded:
        seconds = best_time(prepare(chars), time.thread_time, enough=MAX_SECONDS)
        return None if seconds <= MAX_SECONDS else f"{seconds:.3f} s for {chars} characters"
    return growth_problem(prepare, chars // 4, floor_seconds=chars * LINEAR_SECONDS_PER_CHAR)


def _add(found: dict[Pattern, PackagePattern], pattern: PackagePattern) -> None:
    """Add a pattern. Of several globals that have it, the one whose methods are known counts."""
    earlier = found.get(pattern.pattern)
    if earlier is None or earlier.methods is UNKNOWN:
        found[pattern.pattern] = pattern


def _methods_called(trees: Mapping[str, ast.Module]) -> dict[tuple[str, str], set[str]]:
    """Return the methods of patterns that are called on each name. A private name belongs to its module."""
    called: dict[tuple[str, str], set[str]] = {}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=method):
                    scope = module if name.startswith("_") else ""
                    called.setdefault((scope, name), set()).add(method)
                case _:
                    pass
    return called


def _patterns_in(value: Any, seen: set[int]) -> Iterator[Pattern]:
    """Find the patterns in a value, in its items and fields, and in the constraints of a type."""
    if id(value) in seen or isinstance(value, str | bytes | int | ModuleType):
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, msgspec.Meta) and value.pattern is not None:
        yield re.compile(value.pattern)
    for item in _items(value):
        yield from _patterns_in(item, seen)


def _items(value: Any) -> Iterable[Any]:
    """Return the items of a collection, the constraints of a type, or the fields of an object of the package."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, Sequence | set | frozenset):
        return value
    if hasattr(value, "__metadata__"):
        constraints: Iterable[Any] = value.__metadata__
        return constraints
    if isinstance(value, type) or not type(value).__module__.startswith("holdfast"):
        return ()
    names = getattr(value, "__struct_fields__", None) or getattr(value, "__slots__", None) or vars(value)
    return [getattr(value, name, None) for name in names]


def _patterns_in_calls(module: ModuleType, tree: ast.Module) -> Iterator[tuple[int, str, Pattern]]:
    """Find the patterns that are written in calls such as `re.sub(r"a+", ...)`, with the function that is called.

    What `re.compile` returns is found in a global.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=name), args=[source, *_]) if (
                name in SCANNING | MATCHING
            ):
                try:
                    text = eval(compile(ast.Expression(source), "", "eval"), vars(module))
                except NameError:
                    raise AssertionError(
                        f"{module.__name__}, line {node.lineno}: re.{name} has a pattern made of arguments, which no"
                        " test can measure; compile it in a global, or search without a pattern"
                    ) from None
                yield node.lineno, name, re.compile(text)
            case _:
                pass


def hostile_texts(pattern: Pattern) -> Iterator[tuple[str, str, str]]:
    """Return texts on which a slow pattern is slow: a prefix, a text to be repeated, and a suffix.

    They are runs and pairs of the characters that the pattern mentions, texts that it matches or nearly matches, and
    for each repetition in it what it repeats.
    """
    is_text = isinstance(pattern.pattern, str)
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = sre_parser.parse(source, pattern.flags if is_text else pattern.flags & ~re.UNICODE)
    generator = random.Random(source)
    characters = list(dict.fromkeys([*_characters(tree), *ORDINARY_CHARACTERS]))
    paired = generator.sample(characters, min(MAX_PAIRED, len(characters)))
    repeated = dict.fromkeys([*characters, *(one + other for one in paired for other in paired)])
    for _ in range(SAMPLES):
        sample = _sample(tree, generator)
        repeated |= dict.fromkeys([sample, sample[:-1], sample[: generator.randint(0, len(sample))]])
    pumps = [(prefix, pump) for prefix, pump in dict.fromkeys(_pumps(tree, "", generator)) if pump]
    repeated |= dict.fromkeys(prefix + pump for prefix, pump in pumps)
    yield from (("", text, "") for text in repeated if text)
    yield from ((prefix, pump, suffix) for prefix, pump in pumps for suffix in ("\x01", ""))


def _pumps(tree: Any, prefix: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    for operator, argument in tree:
        node = [(operator, argument)]
        for inner in _children(operator, argument):
            if str(operator) in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
                yield prefix, _sample(inner, generator)
            yield from _pumps(inner, prefix, generator)
        prefix += _sample(node, generator)


def _children(operator: Any, argument: Any) -> list[Any]:
    """Return the patterns inside a node."""
    match str(operator):
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "SUBPATTERN":
            return [argument[3]]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
        case _:
            return []


def _characters(tree: Any) -> Iterator[str]:
    """Return a character of each class that a pattern mentions."""
    for operator, argument in tree:
        if str(operator) in {"LITERAL", "IN"}:
            yield _sample([(operator, argument)], random.Random(0))
        for inner in _children(operator, argument):
            yield from _characters(inner)


def _sample(tree: Any, generator: random.Random) -> str:
    """Return a text that a pattern matches, apart from assertions."""
    text = ""
    for operator, argument in tree:
        match str(operator):
            case "LITERAL":
                text += chr(argument)
            case "NOT_LITERAL":
                text += "a" if argument != ord("a") else "b"
            case "ANY":
                text += "a"
            case "IN":
                text += _sample_of_class(argument, generator)
            case "BRANCH":
                text += _sample(generator.choice(argument[1]), generator)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = argument
                times = generator.randint(low, max(low, min(high, MAX_SAMPLE_REPEATS)))
                text += "".join(_sample(inner, generator) for _ in range(times))
            case "SUBPATTERN" | "ATOMIC_GROUP":
                text += _sample(_children(operator, argument)[0], generator)
            case _:
                pass  # an assertion takes no text
    return text


def _sample_of_class(items: list[Any], generator: random.Random) -> str:
    is_negated = str(items[0][0]) == "NEGATE"
    if is_negated:
        compiled = re.compile(_class_source(items))
        return next((character for character in "a 1.é漢" if compiled.match(character)), "a")
    operator, argument = generator.choice(items)
    match str(operator):
        case "LITERAL":
            return chr(argument)
        case "RANGE":
            return chr(generator.choice(argument))
        case _:
            categories = {"DIGIT": "1", "SPACE": " ", "WORD": "a", "NOT_DIGIT": "a", "NOT_SPACE": "a", "NOT_WORD": "-"}
            return categories[str(argument).removeprefix("CATEGORY_")]


def _class_source(items: list[Any]) -> str:
    escapes = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w", "NOT_DIGIT": r"\D", "NOT_SPACE": r"\S", "NOT_WORD": r"\W"}
    source = ""
    for operator, argument in items[1:]:
        match str(operator):
            case "LITERAL":
                source += re.escape(chr(argument))
            case "RANGE":
                source += f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
            case _:
                source += escapes[str(argument).removeprefix("CATEGORY_")]
    return f"[^{source}]"
