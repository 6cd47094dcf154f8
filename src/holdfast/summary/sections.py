"""The sections of a summary: their fields, titles, order and limits."""

from typing import Final, NamedTuple

from holdfast.model.summaries import Language


class Section(NamedTuple):
    """A list of lines in a summary, shown under a title."""

    field: str
    """The field of `Summary` that has its lines."""
    title: str
    """The title in an overview."""
    earlier_title: str
    """The title below `EARLIER_TITLE`; the same as `title` or shorter."""
    max_lines: int
    """How many lines the local summariser selects. 0 if another limit applies."""
    value: float
    """Value of its most important line, compared with lines of other sections when not all lines fit."""
    half_life: float
    """Number of lines after which the value of a further line is halved."""
    is_shown_empty: bool
    """Whether an overview shows the section if it has no lines, so that a reader knows that there are none."""


STEPS: Final = Section("steps", "Analysis", "Steps", 10, 9.0, 1.5, is_shown_empty=True)
REQUESTS: Final = Section("requests", "Primary Request and Intent", "Requests", 6, 12.0, 1.5, is_shown_empty=True)
CONSTRAINTS: Final = Section("constraints", "Constraints", "Constraints", 0, 0.0, 1.0, is_shown_empty=False)
"""The standing rules. They have a token budget of their own, so they do not compete with other lines."""
DECISIONS: Final = Section("decisions", "Decisions", "Decisions", 7, 8.5, 8.0, is_shown_empty=False)
FACTS: Final = Section("facts", "Facts", "Facts", 24, 10.0, 30.0, is_shown_empty=False)
VALUES: Final = Section("values", "Tool Results", "Tool Results", 0, 10.0, 60.0, is_shown_empty=False)
CONCEPTS: Final = Section("concepts", "Key Concepts", "Key Concepts", 8, 4.5, 8.0, is_shown_empty=True)
PENDING: Final = Section("pending", "Pending Tasks", "Pending Tasks", 7, 9.8, 6.0, is_shown_empty=True)

SECTIONS: Final = (STEPS, REQUESTS, CONSTRAINTS, DECISIONS, FACTS, VALUES, CONCEPTS, PENDING)
"""All sections in the order of an overview."""
EARLIER_SECTIONS: Final = (CONSTRAINTS, PENDING, DECISIONS, FACTS, VALUES, REQUESTS, STEPS)
"""The sections that a session keeps of earlier archives, the most important first."""
MODEL_SECTIONS: Final = (STEPS, REQUESTS, CONCEPTS, DECISIONS, CONSTRAINTS, FACTS, PENDING)
"""The sections that a language model fills, in the order of its JSON schema. Values are copied from tool results."""
ABSTRACT_FIELDS: Final = ("topic", "intent", "result", "status")
"""The fields of `Summary` that make up its abstract."""

TITLE: Final = "# Session Summary"
ABSTRACT_LABEL: Final = "**One-line overview**: "
EARLIER_TITLE: Final = "## Earlier in This Session"

NO_LINES: Final[dict[Language, str]] = {"en": "None.", "zh": "无。"}
NO_TOPIC: Final[dict[Language, str]] = {"en": "Conversation", "zh": "会话"}
EARLIER_LABEL: Final[dict[Language, str]] = {"en": "Earlier", "zh": "此前"}
"""Label of earlier requests in a rolling abstract."""
STATUS: Final[dict[Language, dict[str, str]]] = {
    "en": {"done": "done", "in_progress": "in progress", "blocked": "blocked", "has_questions": "open questions"},
    "zh": {"done": "已完成", "in_progress": "进行中", "blocked": "受阻", "has_questions": "有待答复"},
}
