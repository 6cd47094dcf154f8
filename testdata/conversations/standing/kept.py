"""How many standing rules and preferences are kept word for word, and what is kept that is none."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from conversations.spoken import spoken
from conversations.standing import StandingConversation
from holdfast.client.sync.client import Client
from holdfast.summary.rules import StandingRules, join, standing

PIECES = (1, 4, 10)
MAX_LINE = 200


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept of conversations that were committed in so many pieces."""

    pieces: int
    expected: int
    kept: int
    longest: int
    missed: list[str]
    false: list[str]
    """Kept, but no rule, or withdrawn, or a whole question."""


LinesOf = Callable[[StandingConversation, int], list[str]]


def rules_kept(conversations: Sequence[StandingConversation], pieces: int, lines_of: LinesOf) -> Kept:
    """`lines_of` gives the rules of a conversation that is committed in so many pieces."""
    missed: list[str] = []
    false: list[str] = []
    longest = 0
    for conversation in conversations:
        lines = lines_of(conversation, pieces)
        longest = max([longest, *map(len, lines)])
        short = [line for line in lines if len(line) <= MAX_LINE]
        missed += [f"{conversation.name}: {core}" for core in conversation.keep if not _within(core, short)]
        false += [f"{conversation.name}: {line}" for line in lines if _is_false(line, conversation)]
    expected = sum(len(each.keep) for each in conversations)
    return Kept(
        pieces=pieces, expected=expected, kept=expected - len(missed), longest=longest, missed=missed, false=false
    )


def extracted(conversation: StandingConversation, pieces: int) -> list[str]:
    """The rules that are extracted from consecutive pieces of a conversation and joined."""
    messages = spoken(*conversation.messages)
    borders = [len(messages) * number // pieces for number in range(pieces + 1)]
    found = StandingRules()
    for start, end in pairwise(borders):
        found = join(found, standing(messages[start:end], lambda: None))
    return [line.text for line in found.rules]


def committed(client: Client, conversation: StandingConversation, pieces: int) -> list[str]:
    """The rules in the context of a session after the conversation was committed in consecutive pieces."""
    session = client.session()
    turns = conversation.messages
    for start, end in pairwise([len(turns) * number // pieces for number in range(pieces + 1)]):
        session.add_messages(turns[start:end])
        client.wait_for_task(str(session.commit().task_id))
    return shown_rules(session.context().latest_archive_overview)


def shown_rules(overview: str) -> list[str]:
    """The lines under each heading of constraints, without what they cite."""
    blocks = [block.splitlines() for block in overview.split("\n\n")]
    rules = [block[1:] for block in blocks if block[0].lstrip("# ") == "Constraints"]
    return [line.removeprefix("- ").rpartition(" [")[0] for lines in rules for line in lines]


def _within(core: str, lines: Sequence[str]) -> bool:
    return any(core.lower() in line.lower() for line in lines)


def _is_false(line: str, conversation: StandingConversation) -> bool:
    cores = [*conversation.keep, *conversation.may]
    if "?" in line or any(core.lower() in line.lower() for core in conversation.gone):
        return True
    return not any(core.lower() in line.lower() or line.lower() in core.lower() for core in cores)
