"""The chain of audit lines: what changes a line, and what `verify` says of it."""

from collections.abc import Callable

import msgspec
import pytest

from holdfast import audit_chain
from holdfast.audit_chain import LineContent, Verifier
from holdfast.model.audit import AuditHead, AuditLine, AuditVerification, SavedHead

ACCOUNT = "acme"
KEY = "secret"


def make_chain(count: int, *, start: int = 0) -> list[AuditLine]:
    lines: list[AuditLine] = []
    link = audit_chain.first_link(ACCOUNT)
    for number in range(start + 1, start + count + 1):
        content = LineContent(
            f"aud_{number}",
            "2026-01-01T00:00:00.000000Z",
            "alice",
            "user",
            "UpdateSession",
            "s",
            "default",
            "127.0.0.1",
            "k",
            "1f-3",
            "done",
        )
        lines.append(seal(content, number, link))
        link = lines[-1].link
    return lines


def seal(content: LineContent, number: int, link: str) -> AuditLine:
    salt = f"{number:032x}"
    digest = audit_chain.digest_of(ACCOUNT, content, salt)
    return AuditLine(
        **msgspec.structs.asdict(content),
        number=number,
        salt=salt,
        digest=digest,
        link=audit_chain.link_of(link, number, content.id, digest),
    )


def head_of(lines: list[AuditLine], *, key: str | None = None) -> AuditHead:
    last = lines[-1]
    signature = None if key is None else audit_chain.sign(key, ACCOUNT, last.number, last.link)
    return AuditHead(
        account_id=ACCOUNT,
        number=last.number,
        link=last.link,
        start_number=0,
        start_link=audit_chain.first_link(ACCOUNT),
        signature=signature,
    )


def verify(
    lines: list[AuditLine],
    head: AuditHead | None,
    *,
    heads: list[SavedHead] | None = None,
    key: str | None = None,
    unsealed: int = 0,
) -> AuditVerification:
    verifier = Verifier(ACCOUNT, heads or [], key)
    if head is not None:
        verifier.begin(head)
    for line in lines:
        verifier.add(line)
    return verifier.finish(head, unsealed)


def problem(result: AuditVerification) -> tuple[str, int] | None:
    return None if result.problem is None else (result.problem.kind, result.problem.number)


def test_an_unchanged_chain_is_intact() -> None:
    lines = make_chain(5)
    result = verify(lines, head_of(lines))
    assert (problem(result), result.lines, result.last_number, result.link) == (None, 5, 5, lines[-1].link)


@pytest.mark.parametrize("field", [name for name in AuditLine.__struct_fields__ if name not in {"number", "erased"}])
def test_a_change_of_any_field_is_found_in_its_line(field: str) -> None:
    lines = make_chain(5)
    changed = list(lines)
    changed[2] = msgspec.structs.replace(lines[2], **{field: getattr(lines[2], field) + "x"})
    assert problem(verify(changed, head_of(lines))) == ("changed", 3)


EDITS: dict[str, tuple[Callable[[list[AuditLine]], list[AuditLine]], tuple[str, int]]] = {
    "drop the first": (lambda lines: lines[1:], ("missing", 1)),
    "drop one": (lambda lines: lines[:2] + lines[3:], ("missing", 3)),
    "drop the last": (lambda lines: lines[:-1], ("truncated", 5)),
    "drop all": (lambda lines: [], ("truncated", 1)),
    "swap two": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], ("reordered", 2)),
    "swap the numbers of two": (
        lambda lines: [
            lines[0],
            msgspec.structs.replace(lines[2], number=2),
            msgspec.structs.replace(lines[1], number=3),
            *lines[3:],
        ],
        ("reordered", 2),
    ),
    "copy one": (lambda lines: [*lines[:3], lines[2], *lines[3:]], ("inserted", 3)),
    "invent one at the end": (
        lambda lines: [*lines, seal(audit_chain.content_of(lines[0]), 6, lines[-1].link)],
        ("inserted", 6),
    ),
    "invent one in between": (
        lambda lines: [*lines[:2], seal(audit_chain.content_of(lines[0]), 3, lines[1].link), *lines[2:]],
        ("inserted", 3),
    ),
    "rewrite one with a valid digest": (
        lambda lines: [
            *lines[:2],
            msgspec.structs.replace(
                seal(msgspec.structs.replace(audit_chain.content_of(lines[2]), user_id="eve"), 3, lines[1].link),
            ),
            *lines[3:],
        ],
        ("changed", 4),
    ),
    "claim that one was erased": (
        lambda lines: [
            *lines[:2],
            msgspec.structs.replace(
                lines[2], erased=True, salt="", **dict.fromkeys(LineContent.__struct_fields__[1:], "")
            ),
            *lines[3:],
        ],
        ("erased", 3),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_chain_is_not_intact(edit: str) -> None:
    change, expected = EDITS[edit]
    lines = make_chain(5)
    assert problem(verify(change(lines), head_of(lines))) == expected


def test_lines_of_another_account_do_not_fit() -> None:
    lines = make_chain(2)
    verifier = Verifier("rival")
    for line in lines:
        verifier.add(line)
    assert problem(verifier.finish(head_of(lines))) == ("changed", 1)


def with_erased(lines: list[AuditLine], number: int) -> list[AuditLine]:
    empty = dict.fromkeys(LineContent.__struct_fields__[1:], "")
    erased = msgspec.structs.replace(lines[number - 1], erased=True, salt="", **empty)
    content = msgspec.structs.replace(
        audit_chain.content_of(lines[0]), id="aud_e", action=audit_chain.ERASURE, resource=f"numbers=[{number}]"
    )
    changed = [*lines[: number - 1], erased, *lines[number:]]
    return [*changed, seal(content, len(lines) + 1, lines[-1].link)]


def test_an_erased_line_is_intact_if_a_later_line_records_it() -> None:
    lines = with_erased(make_chain(4), 2)
    result = verify(lines, head_of(lines))
    assert (problem(result), result.erased) == (None, 1)
    assert problem(verify(lines[:-1], head_of(lines[:-1]))) == ("erased", 2)
    assert problem(verify(lines[:-1], head_of(lines[:-1]), unsealed=1)) is None


def test_a_signature_is_checked_with_the_key_only() -> None:
    lines = make_chain(3)
    assert verify(lines, head_of(lines, key=KEY)).signature == "not checked"
    assert verify(lines, head_of(lines)).signature == "none"
    assert verify(lines, head_of(lines, key=KEY), key=KEY).signature == "checked"
    for head in (head_of(lines, key="other"), head_of(lines)):
        assert problem(verify(lines, head, key=KEY)) == ("signature", 3)


def test_a_chain_after_retention_needs_its_checkpoint() -> None:
    lines = make_chain(5)
    text = audit_chain.checkpoint_text(KEY, ACCOUNT, 3, lines[2].link)
    content = msgspec.structs.replace(
        audit_chain.content_of(lines[0]), id="aud_c", action=audit_chain.CHECKPOINT, resource=text
    )
    lines.append(seal(content, 6, lines[-1].link))
    head = msgspec.structs.replace(head_of(lines, key=KEY), start_number=3, start_link=lines[2].link)
    result = verify(lines[3:], head, key=KEY)
    assert (problem(result), result.first_number, result.signature) == (None, 4, "checked")
    without = msgspec.structs.replace(head_of(lines[:5]), start_number=3, start_link=lines[2].link)
    assert problem(verify(lines[3:5], without)) == ("missing", 1)
    wrong = msgspec.structs.replace(head, start_number=4, start_link=lines[3].link)
    assert problem(verify(lines[4:], wrong)) == ("missing", 1)
    assert problem(verify(lines[3:], head, key="other")) == ("signature", 6)


def saved(line: AuditLine) -> SavedHead:
    return SavedHead(account_id=ACCOUNT, number=line.number, link=line.link, at="2026-01-01T00:00:00.000000Z")


def test_a_chain_contains_the_heads_that_were_saved() -> None:
    lines = make_chain(5)
    heads = [saved(lines[1]), saved(lines[4])]
    result = verify(lines, head_of(lines), heads=heads)
    assert (problem(result), result.heads_checked) == (None, 2)
    assert problem(verify(lines[:4], head_of(lines[:4]), heads=heads)) == ("truncated", 5)
    rewritten = make_chain(1)
    for number in range(2, 6):
        content = msgspec.structs.replace(audit_chain.content_of(lines[0]), id=f"aud_{number}", user_id="eve")
        rewritten.append(seal(content, number, rewritten[-1].link))
    assert problem(verify(rewritten, head_of(rewritten))) is None, "whoever rewrites everything is not found"
    assert problem(verify(rewritten, head_of(rewritten), heads=heads)) == ("rewritten", 2)
