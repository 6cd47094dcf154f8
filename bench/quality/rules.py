"""Measures how many standing rules are kept word for word by conversations committed in 1, 4 and 10 pieces."""

from functools import partial

import holdfast
from conversations.standing import STANDING, WRITTEN_LATER
from conversations.standing.measuring import PIECE_COUNTS, commit_in_pieces, measure_kept_rules
from quality.figures import QualityFigure
from scale import Setup

EXPECTED, MIN_KEPT = 60, 57
"""At least this many of the expected rules must be kept, or the same share of a sample."""
MAX_FALSE = 6
"""How many other sentences may be taken for rules."""
MAX_LINE_CHARS = 200


def measure(setup: Setup) -> list[QualityFigure]:
    figures: list[QualityFigure] = []
    with holdfast.connect(setup.folder / "rules.db") as client:
        for name, conversations in (
            ("60 rules and preferences", STANDING),
            ("40 more, on which the patterns were improved", WRITTEN_LATER),
        ):
            for pieces in PIECE_COUNTS:
                kept = measure_kept_rules(
                    conversations[:: setup.scale.sample_step], pieces, partial(commit_in_pieces, client)
                )
                min_kept = MIN_KEPT * kept.expected // EXPECTED
                met = kept.kept >= min_kept and len(kept.false) <= MAX_FALSE and kept.longest <= MAX_LINE_CHARS
                figures.append(
                    QualityFigure(
                        name=f"{name}, in {pieces} {'piece' if pieces == 1 else 'pieces'}: kept / false / longest line",
                        measured=f"{kept.kept} / {len(kept.false)} / {kept.longest}",
                        target=f">= {min_kept} / <= {MAX_FALSE} / <= {MAX_LINE_CHARS}"
                        if conversations is STANDING
                        else "",
                        met=met,
                        notes=[f"missed: {each}" for each in kept.missed],
                    )
                )
    return figures
