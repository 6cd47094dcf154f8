"""Standing rules and preferences: clauses in which users state how all further work is to be done, word for word."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import TextPart
from holdfast.model.summaries import Line
from holdfast.summary.rules import chinese, english
from holdfast.summary.rules.splitting import Sentence, split_sentences
from holdfast.summary.rules.withdrawals import (
    MAX_WITHDRAWALS,
    active_rules,
    may_withdraw,
    parse_withdrawal,
    withdraws_previous,
)

__all__ = ["StandingRules", "active_rules", "extract_rules", "merge_rules"]

MAX_RULES_PER_MESSAGE = 200
_MAX_PRECEDING_CHARS = 2_000
_MIN_CLAUSE_CHARS = 4


class StandingRules(msgspec.Struct, frozen=True):
    """The rules and preferences of a range of messages, and its withdrawals of rules given before the range."""

    rules: list[Line] = []
    withdrawals: list[Line] = []
    dropped: list[Line] = []
    """Rules given in the range that are no longer active at its end."""


def extract_rules(messages: Sequence[Message], yield_cpu: Callable[[], None]) -> StandingRules:
    """Return the rules and preferences that users gave, in their order, as clauses of at most 200 characters.

    Each clause is a substring of its message, except for whitespace. Rules that were withdrawn or replaced later are
    only in `dropped`.
    """
    rules: list[Line] = []
    withdrawals: list[Line] = []
    all_rules: list[Line] = []
    preceding = ""
    for message in messages:
        yield_cpu()
        if message.role == "assistant":
            preceding = message.text[-_MAX_PRECEDING_CHARS:]
        if message.role != "user":
            continue
        extracted = _extract_from_message(message, preceding, yield_cpu)
        if extracted.withdrawals:
            rules = active_rules(rules, extracted.withdrawals)
            withdrawals += extracted.withdrawals
        rules += extracted.rules
        all_rules += extracted.rules
    rules = active_rules(rules, ())
    active = {(line.text, *line.sources) for line in rules}
    dropped = [line for line in all_rules if (line.text, *line.sources) not in active]
    return StandingRules(rules, withdrawals[-MAX_WITHDRAWALS:], dropped)


def merge_rules(earlier: StandingRules, later: StandingRules) -> StandingRules:
    """Return the active rules of two consecutive ranges of messages."""
    if not later.rules and not later.withdrawals:
        return earlier
    remaining = active_rules(earlier.rules, later.withdrawals) if later.withdrawals else earlier.rules
    rules = active_rules([*remaining, *later.rules], ()) if later.rules else list(remaining)
    return StandingRules(rules, [*earlier.withdrawals, *later.withdrawals][-MAX_WITHDRAWALS:])


def _extract_from_message(message: Message, preceding: str, yield_cpu: Callable[[], None]) -> StandingRules:
    """Return the rules of one message. `preceding` is the end of the assistant's message before it."""
    rules: list[Line] = []
    withdrawals: list[Line] = []
    for part in message.parts:
        if not isinstance(part, TextPart):
            continue
        in_rule_list, new_rules = False, 0
        for sentence in split_sentences(part.text, yield_cpu):
            can_withdraw = may_withdraw(sentence.words, sentence.lower)
            if new_rules and can_withdraw and withdraws_previous(sentence.text):
                del rules[-new_rules:]
                continue
            withdrawal = _find_withdrawal(sentence, preceding, part.text) if can_withdraw else None
            if withdrawal:
                withdrawals.append(Line(withdrawal, [message.seq]))
                rules = active_rules(rules, withdrawals[-1:])
            in_rule_list = _announces_rules(sentence) or (in_rule_list and sentence.is_list_item)
            clauses = list(_find_clauses(sentence, announced=in_rule_list and sentence.is_list_item))
            new_rules = len(clauses)
            rules += [Line(text, [message.seq]) for text in clauses]
            if len(rules) >= MAX_RULES_PER_MESSAGE:
                return StandingRules(rules[:MAX_RULES_PER_MESSAGE], withdrawals[:MAX_RULES_PER_MESSAGE])
    return StandingRules(rules, withdrawals[:MAX_RULES_PER_MESSAGE])


def _find_withdrawal(sentence: Sentence, preceding: str, text: str) -> str | None:
    if sentence.is_question:
        return None
    return parse_withdrawal(sentence.lower, sentence.words, f"{preceding} {text[:_MAX_PRECEDING_CHARS]}")


def _announces_rules(sentence: Sentence) -> bool:
    return sentence.text.endswith((":", "：")) and english.announces_rules(sentence)  # noqa: RUF001


def _find_clauses(sentence: Sentence, *, announced: bool) -> Iterator[str]:
    find = chinese.find_clauses if chinese.HAN_PATTERN.search(sentence.lower) else english.find_clauses
    for start, end in find(sentence, announced=announced):
        text = sentence.text[start:end].strip(" ,;:*")
        if len(text) >= _MIN_CLAUSE_CHARS:
            yield text
