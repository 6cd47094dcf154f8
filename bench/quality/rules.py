"""Standing rules and preferences that are kept word for word, for conversations committed in 1, 4 and 10 pieces."""

from functools import partial

import holdfast
from conversations.standing import LATER, STANDING
from conversations.standing.kept import PIECES, committed, rules_kept
from quality.shown import Shown
from scale import Setup

EXPECTED, MIN_KEPT, MAX_FALSE, MAX_CHARS = 60, 57, 6, 200


def measure(setup: Setup) -> list[Shown]:
    figures: list[Shown] = []
    with holdfast.connect(setup.folder / "rules.db") as client:
        for name, conversations in (
            ("60 rules and preferences", STANDING),
            ("40 more, on which the patterns were improved", LATER),
        ):
            for pieces in PIECES:
                kept = rules_kept(conversations[:: setup.scale.every], pieces, partial(committed, client))
                least = MIN_KEPT * kept.expected // EXPECTED
                met = kept.kept >= least and len(kept.false) <= MAX_FALSE and kept.longest <= MAX_CHARS
                figures.append(
                    Shown(
                        what=f"{name}, in {pieces} {'piece' if pieces == 1 else 'pieces'}: kept / false / longest line",
                        measured=f"{kept.kept} / {len(kept.false)} / {kept.longest}",
                        target=f">= {least} / <= {MAX_FALSE} / <= {MAX_CHARS}" if conversations is STANDING else "",
                        met=met,
                        notes=[f"missed: {each}" for each in kept.missed],
                    )
                )
    return figures
