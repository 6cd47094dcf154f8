"""The chain of an audit log: how lines are encoded, linked, signed and verified.

A line has a digest of its content and of a random salt. Its link is a hash of the link before, its number, its id and
its digest. The content of a line can therefore be erased: its digest proves that a line was there, and without the
salt the digest reveals nothing of it.
"""

import functools
import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from holdfast.model.audit import AuditHead, AuditLine, AuditProblem, AuditVerification, ProblemKind, SavedHead

ERASURE = "EraseAudit"
"""The action of a line that records an erasure. Its resource is `numbers=[3, 4]`."""
CHECKPOINT = "Checkpoint"
"""The action of a line that records what retention has removed: `through=3 link=... signature=...`."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC
_ERASED_NUMBERS = re.compile(r"numbers=\[([0-9, ]*)\]")
_CHECKPOINT = re.compile(r"through=([0-9]+) link=([0-9a-f]{64})(?: signature=([0-9a-f]{64}))?")
_encode = msgspec.json.Encoder().encode


class LineContent(msgspec.Struct, frozen=True):
    """What a line records, in the order in which it is encoded."""

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


def time_text(micros: int) -> str:
    """A stored time as it is encoded.

    >>> time_text(1_700_000_000_000_000)
    '2023-11-14T22:13:20.000000Z'
    """
    seconds, fraction = divmod(micros, 1_000_000)
    try:
        return f"{_second_text(seconds)}.{fraction:06}Z"
    except OverflowError:  # the row was damaged; its digest will not match
        return str(micros)


@functools.lru_cache(16)
def _second_text(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def digest_of(account_id: str, content: LineContent, salt: str) -> str:
    values = [account_id, *msgspec.structs.astuple(content)]
    return hashlib.sha256(b"holdfast audit line\n" + salt.encode() + b"\n" + _encode(values)).hexdigest()


def first_link(account_id: str) -> str:
    """What the first line of a chain is linked to. It differs between accounts."""
    return hashlib.sha256(b"holdfast audit chain\n" + account_id.encode()).hexdigest()


def link_of(link_before: str, number: int, id: str, digest: str) -> str:
    return hashlib.sha256(f"{link_before}\n{number}\n{id}\n{digest}".encode()).hexdigest()


def sign(key: str, account_id: str, number: int, link: str) -> str:
    return hmac.new(key.encode(), f"{account_id}\n{number}\n{link}".encode(), hashlib.sha256).hexdigest()


def checkpoint_text(key: str | None, account_id: str, number: int, link: str) -> str:
    """The resource of a checkpoint: the last line that is removed, and its link."""
    signature = "" if key is None else f" signature={sign(key, account_id, number, link)}"
    return f"through={number} link={link}{signature}"


def content_of(line: AuditLine) -> LineContent:
    return LineContent(*(getattr(line, name) for name in LineContent.__struct_fields__))


class Verifier:
    """Verifies a chain line by line. It keeps the first problem, and reads on to say what kind it is.

    `heads` are heads of the account that were saved earlier: the chain must contain them. With `key`, signatures are
    checked.
    """

    def __init__(self, account_id: str, heads: Iterable[SavedHead] = (), key: str | None = None) -> None:
        self._account_id = account_id
        self._key = key
        self._heads: dict[int, str] = {}
        self._conflicting_heads = 0
        for head in heads:
            if head.account_id == account_id and self._heads.setdefault(head.number, head.link) != head.link:
                self._conflicting_heads = head.number
        self._heads_checked = 0
        self._begun = False
        self._start = 0
        self._start_link = self._link = first_link(account_id)
        self._number = 0
        self._lines = 0
        self._erased: set[int] = set()
        self._erased_count = 0
        self._has_checkpoint = False
        self._signature_seen = self._signature_checked = False
        self._problem: AuditProblem | None = None

    @property
    def number(self) -> int:
        """The number of the last line that was read."""
        return self._number

    def begin(self, head: AuditHead) -> None:
        """Begin where the chain begins. If retention removes more while it is read, go on after that."""
        if head.start_number > self._number or not self._begun:
            self._start, self._start_link = head.start_number, head.start_link
            self._number, self._link, self._has_checkpoint = head.start_number, head.start_link, False
            self._check_saved_head(head.start_number, head.start_link)
            if head.start_number == 0 and head.start_link != first_link(self._account_id):
                self._fail("changed", 1, "the beginning of the chain is not that of the account", None)
        self._begun = True

    def add(self, line: AuditLine, file_line: int | None = None) -> None:
        self._lines += 1
        if self._problem is not None:
            self._look_ahead(line)
            return
        expected = self._number + 1
        if line.number > expected:
            missing = (
                f"line {expected} is" if line.number == expected + 1 else f"lines {expected} to {line.number - 1} are"
            )
            self._fail("missing", expected, f"{missing} missing before line {line.number}", file_line)
        elif line.number < expected:
            self._fail("inserted", line.number, f"a line {line.number} follows line {self._number}", file_line)
        elif line.link != link_of(self._link, line.number, line.id, line.digest):
            self._fail("changed", line.number, f"line {line.number} does not follow from the line before", file_line)
        elif line.erased:
            self._add_erased(line, file_line)
        elif line.digest != digest_of(self._account_id, content_of(line), line.salt):
            self._fail("changed", line.number, f"the content of line {line.number} is not what was sealed", file_line)
        if self._problem is None:
            self._advance(line, file_line)

    def fail_to_read(self, file_line: int, reason: str) -> None:
        """Report that a line of a file cannot be read."""
        self._fail("changed", self._number + 1, f"line {file_line} of the file {reason}", file_line)

    def finish(self, head: AuditHead | None, unsealed: int = 0) -> AuditVerification:
        """Compare the last line with the head, and return the result. Without `head`, the end is missing."""
        if self._problem is None:
            self._check_end(head, unsealed)
        seen = "not checked" if self._signature_seen else "none"
        return AuditVerification(
            account_id=self._account_id,
            lines=self._lines,
            erased=self._erased_count,
            first_number=self._start + 1,
            last_number=self._number,
            link=self._link,
            unsealed=unsealed,
            heads_checked=self._heads_checked,
            signature="checked" if self._signature_checked else seen,  # type: ignore[arg-type]
            problem=self._problem,
        )

    def _advance(self, line: AuditLine, file_line: int | None) -> None:
        self._number, self._link = line.number, line.link
        self._check_saved_head(line.number, line.link)
        if line.outcome != "done" or line.erased:
            return
        if line.action == ERASURE and (erased := _ERASED_NUMBERS.fullmatch(line.resource)):
            self._erased -= {int(number) for number in erased[1].split(",") if number.strip()}
        elif line.action == CHECKPOINT and (found := _CHECKPOINT.fullmatch(line.resource)):
            if (int(found[1]), found[2]) == (self._start, self._start_link):
                self._has_checkpoint = True
            if not self._is_signed(int(found[1]), found[2], found[3]):
                self._fail("signature", line.number, f"the checkpoint in line {line.number} is not signed", file_line)

    def _add_erased(self, line: AuditLine, file_line: int | None) -> None:
        if any(msgspec.structs.astuple(content_of(line))[1:]) or line.salt:
            self._fail("changed", line.number, f"line {line.number} is erased and has a content", file_line)
        self._erased.add(line.number)
        self._erased_count += 1

    def _look_ahead(self, line: AuditLine) -> None:
        """If the line that belongs to the place of the problem follows later, the lines were reordered."""
        problem = self._problem
        if problem is None or problem.kind not in {"changed", "missing"} or problem.number != self._number + 1:
            return
        if line.link == link_of(self._link, problem.number, line.id, line.digest):
            message = f"line {problem.number} is at another place"
            self._problem = msgspec.structs.replace(problem, kind="reordered", message=message)

    def _check_end(self, head: AuditHead | None, unsealed: int) -> None:
        last = self._number
        if head is None:
            self._fail("truncated", last + 1, f"the end is missing: the head should follow line {last}", None)
        elif head.number > last:
            self._fail("truncated", last + 1, f"lines {last + 1} to {head.number} are missing at the end", None)
        elif head.number < last:
            self._fail("inserted", head.number + 1, f"the chain ended with line {head.number}, and has {last}", None)
        elif head.link != self._link:
            self._fail("changed", last, f"the head has another link than line {last}", None)
        elif not self._is_signed(head.number, head.link, head.signature):
            self._fail("signature", last, "the head is not signed with this key", None)
        elif self._start and not self._has_checkpoint and not unsealed:
            self._fail("missing", 1, f"lines 1 to {self._start} are missing, and no checkpoint records it", None)
        elif self._erased and not unsealed:  # the line that records it may not be sealed yet
            self._fail("erased", min(self._erased), f"no line records that line {min(self._erased)} was erased", None)
        elif self._conflicting_heads:
            number = self._conflicting_heads
            self._fail("rewritten", number, f"two saved heads have the number {number} and different links", None)
        elif beyond := [number for number in self._heads if number > last]:
            self._fail("truncated", last + 1, f"a saved head has the number {min(beyond)}", None)

    def _check_saved_head(self, number: int, link: str) -> None:
        saved = self._heads.get(number)
        if saved == link:
            self._heads_checked += 1
        elif saved is not None:
            self._fail("rewritten", number, f"line {number} has another link than the saved head", None)

    def _is_signed(self, number: int, link: str, signature: str | None) -> bool:
        self._signature_seen = self._signature_seen or signature is not None
        if self._key is None:
            return True
        self._signature_checked = True
        return hmac.compare_digest(signature or "", sign(self._key, self._account_id, number, link))

    def _fail(self, kind: ProblemKind, number: int, message: str, file_line: int | None) -> None:
        if self._problem is None:
            self._problem = AuditProblem(kind=kind, number=number, message=message, file_line=file_line)
