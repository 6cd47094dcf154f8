"""The audit log: its lines, the chain that they form, and the result of verifying it."""

from datetime import datetime
from typing import Literal, TypedDict

from holdfast.model.base import WireStruct

AuditOutcome = Literal["done", "denied"]
ProblemKind = Literal["changed", "missing", "reordered", "inserted", "truncated", "rewritten", "signature", "erased"]
"""What is wrong with a chain:

- `changed`: a line, or a part of an export, is not what was sealed.
- `missing`: lines are missing, at the beginning or between others.
- `reordered`: a line is at another place.
- `inserted`: a line was added to the chain.
- `truncated`: the last lines are missing.
- `rewritten`: the chain is not the one whose head was saved.
- `signature`: a checkpoint or a head has no signature, or a wrong one.
- `erased`: the content of a line was erased, and no line records it.
"""


class AuditQuery(TypedDict, total=False):
    """Which audit lines are listed."""

    limit: int
    cursor: str | None
    resource: str | None
    user_id: str | None
    action: str | None
    outcome: AuditOutcome | None
    since: datetime | None
    until: datetime | None


class AuditRecord(WireStruct, frozen=True, kw_only=True):
    """A line of the audit log: who did what, when, from where, and on which version.

    It is written in the transaction of what it records. `at` of an erased line is the time of the erasure.
    """

    id: str
    at: datetime
    user_id: str
    role: str
    action: str
    resource: str
    agent_id: str = ""
    address: str = ""
    key_id: str = ""
    version: str = ""
    """The version of the session before the action: the id of its log and the number of its last message."""
    outcome: AuditOutcome = "done"
    erased: bool = False
    number: int | None = None
    """The number of the line in the chain of its account. None until it is sealed, some milliseconds later."""


class AuditPage(WireStruct, frozen=True):
    records: list[AuditRecord]
    next_cursor: str | None


class AuditLine(WireStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sealed line with everything that proves it. All values are texts as they are in the digest."""

    number: int
    id: str
    at: str
    user_id: str
    role: str
    action: str
    resource: str
    agent_id: str
    address: str
    key_id: str
    version: str
    outcome: str
    salt: str
    digest: str
    link: str
    erased: bool = False
    """Whether its content was erased. It keeps its number, id, digest and link."""


class AuditHead(WireStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last line of a chain, and where the chain begins."""

    account_id: str
    number: int
    link: str
    start_number: int
    """The last line that retention has removed; 0 if it has removed none."""
    start_link: str
    signature: str | None = None
    """Made with the setting `audit_key`. None without one."""


class AuditExport(WireStruct, frozen=True, kw_only=True):
    """Some lines of a chain, in order, and the head of the chain."""

    lines: list[AuditLine]
    head: AuditHead
    unsealed: int
    """The number of lines that are not sealed yet; at most 10,001 are counted."""
    next_cursor: int | None


class AuditErased(WireStruct, frozen=True):
    numbers: list[int]


class ExportRecorded(WireStruct, frozen=True):
    resource: str


class SavedHead(WireStruct, frozen=True, kw_only=True):
    """A line of the file that the setting `audit_head_file` names."""

    account_id: str
    number: int
    link: str
    at: str


class AuditProblem(WireStruct, frozen=True, kw_only=True):
    """The first thing that is wrong with a chain."""

    kind: ProblemKind
    number: int
    """The number of the line that is wrong."""
    message: str
    file_line: int | None = None
    """The line of the file. None if the chain was read from a database."""


class AuditVerification(WireStruct, frozen=True, kw_only=True):
    """The result of verifying a chain."""

    account_id: str
    lines: int
    erased: int
    first_number: int
    last_number: int
    link: str
    """The link of the last line that was read. Compare it with one that you have noted earlier."""
    unsealed: int = 0
    heads_checked: int = 0
    """How many saved heads the chain contains."""
    signature: Literal["checked", "not checked", "none"] = "none"
    problem: AuditProblem | None = None

    @property
    def is_intact(self) -> bool:
        return self.problem is None
