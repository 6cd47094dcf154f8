"""Standing rules and preferences: the clauses by which users want work to go on, word for word."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import TextPart
from holdfast.model.summaries import Line
from holdfast.summary.rules import chinese, english
from holdfast.summary.rules.clauses import Sentence, sentences
from holdfast.summary.rules.withdrawals import MAX_WITHDRAWALS, may_withdraw, settle, takes_back_last, withdrawal_of

__all__ = ["StandingRules", "join", "settle", "standing"]

MAX_RULES_PER_MESSAGE = 200
_MAX_BEFORE = 2_000
_MIN_CLAUSE = 4


class StandingRules(msgspec.Struct, frozen=True):
    """The rules and preferences of a stretch of messages, and what it takes back of those before it."""

    rules: list[Line] = []
    withdrawals: list[Line] = []
    dropped: list[Line] = []
    """Rules of the stretch that no longer hold at its end."""


def standing(messages: Sequence[Message], yield_cpu: Callable[[], None]) -> StandingRules:
    """The standing rules and preferences that users gave, as clauses of at most 200 characters in the order given.

    Each is a stretch of its message, apart from whitespace. What was withdrawn or replaced later is not among them.
    """
    rules: list[Line] = []
    withdrawals: list[Line] = []
    every: list[Line] = []
    before = ""
    for message in messages:
        yield_cpu()
        if message.role == "assistant":
            before = message.text[-_MAX_BEFORE:]
        if message.role != "user":
            continue
        given = _given(message, before, yield_cpu)
        if given.withdrawals:
            rules = settle(rules, given.withdrawals)
            withdrawals += given.withdrawals
        rules += given.rules
        every += given.rules
    rules = settle(rules, ())
    held = {(line.text, *line.sources) for line in rules}
    dropped = [line for line in every if (line.text, *line.sources) not in held]
    return StandingRules(rules, withdrawals[-MAX_WITHDRAWALS:], dropped)


def join(earlier: StandingRules, later: StandingRules) -> StandingRules:
    """The rules of two stretches, one after the other."""
    if not later.rules and not later.withdrawals:
        return earlier
    kept = settle(earlier.rules, later.withdrawals) if later.withdrawals else earlier.rules
    rules = settle([*kept, *later.rules], ()) if later.rules else list(kept)
    return StandingRules(rules, [*earlier.withdrawals, *later.withdrawals][-MAX_WITHDRAWALS:])


def _given(message: Message, before: str, yield_cpu: Callable[[], None]) -> StandingRules:
    """The rules of a single message."""
    rules: list[Line] = []
    withdrawals: list[Line] = []
    for part in message.parts:
        if not isinstance(part, TextPart):
            continue
        announced, fresh = False, 0
        for sentence in sentences(part.text, yield_cpu):
            taking_back = may_withdraw(sentence.words, sentence.lower)
            if fresh and taking_back and takes_back_last(sentence.text):
                del rules[-fresh:]
                continue
            taken_back = _withdrawal(sentence, before, part.text) if taking_back else None
            if taken_back:
                withdrawals.append(Line(taken_back, [message.seq]))
                rules = settle(rules, withdrawals[-1:])
            announced = _announces(sentence) or (announced and sentence.listed)
            clauses = list(_clauses(sentence, announced=announced and sentence.listed))
            fresh = len(clauses)
            rules += [Line(text, [message.seq]) for text in clauses]
            if len(rules) >= MAX_RULES_PER_MESSAGE:
                return StandingRules(rules[:MAX_RULES_PER_MESSAGE], withdrawals[:MAX_RULES_PER_MESSAGE])
    return StandingRules(rules, withdrawals[:MAX_RULES_PER_MESSAGE])


def _withdrawal(sentence: Sentence, before: str, text: str) -> str | None:
    return None if sentence.asks else withdrawal_of(sentence.lower, sentence.words, f"{before} {text[:_MAX_BEFORE]}")


def _announces(sentence: Sentence) -> bool:
    return sentence.text.endswith((":", "：")) and english.announces(sentence)  # noqa: RUF001


def _clauses(sentence: Sentence, *, announced: bool) -> Iterator[str]:
    find = chinese.clauses if chinese.HAN.search(sentence.lower) else english.clauses
    for start, end in find(sentence, announced=announced):
        text = sentence.text[start:end].strip(" ,;:*")
        if len(text) >= _MIN_CLAUSE:
            yield text
