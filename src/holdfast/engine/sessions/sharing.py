"""Sharing sessions: collaborators, share links, and the transfer to another owner."""

from typing import Any

from msgspec.structs import replace

from holdfast.engine.gate import keys
from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.gate.session_access import require_rights, require_session
from holdfast.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from holdfast.model.access import (
    INTERNAL_ID_SEPARATOR,
    RIGHT_BITS,
    Collaborator,
    CollaboratorPage,
    CollaboratorRef,
    ShareLinkCreated,
    ShareLinkPage,
    ShareLinkRef,
    link_internal_id,
    to_bits,
    to_rights,
    user_name,
)
from holdfast.model.identity import Principal
from holdfast.model.sessions import SessionInfo
from holdfast.ops.sharing import (
    CreateShareLink,
    ListCollaborators,
    ListShareLinks,
    RevokeShareLink,
    ShareSession,
    TransferSession,
    UnshareSession,
)
from holdfast.store.access import grants, share_links, user_ids, users
from holdfast.store.access.grants import SharedSession
from holdfast.store.access.share_links import SessionAddress
from holdfast.store.database import Tx
from holdfast.store.tables import changes, session_info, tasks
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

MICROS_PER_SECOND = 1_000_000


def _share(tx: Tx, principal: Principal, op: ShareSession, _prepared: None, context: CallContext) -> Collaborator:
    session = require_session(tx, principal, op, lock=True)
    internal_id = _require_user(tx, session, op.user_id)
    grants.insert_or_replace(
        tx,
        _address(session),
        internal_id,
        op.agent_id or "",
        to_bits(op.rights),
        granted_by=principal.internal_id,
        now=context.now,
        lifetime=_micros(op.expires_in_seconds),
    )
    _record(tx, principal, session, "shared", context, {"user_id": op.user_id, "rights": to_rights(to_bits(op.rights))})
    collaborator = grants.find_collaborator(tx, session.log_id, internal_id)
    if collaborator is None:
        raise NotFoundError("collaborator", op.user_id)
    return collaborator


def _unshare(
    tx: Tx, principal: Principal, op: UnshareSession, _prepared: None, context: CallContext
) -> CollaboratorRef:
    session = require_session(tx, principal, op, lock=True)
    is_owner = session.owner_id == principal.internal_id
    if not is_owner and op.user_id in {principal.user_id, principal.internal_id}:
        grants.delete(tx, session.log_id, principal.internal_id)  # the caller leaves
    else:
        require_rights(principal, session, RIGHT_BITS["own"])
        # As the list of collaborators shows it, or the name of a user who has another internal id.
        if not any(grants.delete(tx, session.log_id, user) for user in (op.user_id, user_ids.current(tx, op.user_id))):
            raise NotFoundError("collaborator", op.user_id)
    _record(tx, principal, session, "unshared", context, {"user_id": op.user_id})
    return CollaboratorRef(session.session_id, op.user_id)


def _list_collaborators(
    tx: Tx, principal: Principal, op: ListCollaborators, _prepared: None, _context: CallContext
) -> CollaboratorPage:
    session = require_session(tx, principal, op)
    found = grants.page(tx, session.log_id, after=op.cursor, limit=op.limit + 1)
    page = found[: op.limit]
    return CollaboratorPage(page, page[-1].user_id if len(found) > op.limit else None)


def _create_link(
    tx: Tx, principal: Principal, op: CreateShareLink, _prepared: None, context: CallContext
) -> ShareLinkCreated:
    session = require_session(tx, principal, op, lock=True)
    key = keys.new_link(tx.account, context.ids)
    lifetime = _micros(op.expires_in_seconds)
    rights = to_bits(op.rights)
    share_links.insert(tx, key.key_id, session.log_id, key.hash)
    grants.insert_or_replace(
        tx,
        _address(session),
        link_internal_id(key.key_id),
        "",
        rights,
        granted_by=principal.internal_id,
        now=context.now,
        lifetime=lifetime,
    )
    _record(tx, principal, session, "link_created", context, {"link_id": key.key_id, "rights": to_rights(rights)})
    return ShareLinkCreated(
        id=key.key_id,
        session_id=session.session_id,
        owner=session.owner_id,
        rights=to_rights(rights),
        expires_at=None if lifetime is None else from_micros(context.now + lifetime),
        token=key.text,
    )


def _list_links(
    tx: Tx, principal: Principal, op: ListShareLinks, _prepared: None, _context: CallContext
) -> ShareLinkPage:
    session = require_session(tx, principal, op)
    address = SessionAddress(session.owner_id, session.session_id)
    found = share_links.page(tx, session.log_id, address, after=op.cursor, limit=op.limit + 1)
    page = found[: op.limit]
    return ShareLinkPage(page, page[-1].id if len(found) > op.limit else None)


def _revoke_link(
    tx: Tx, principal: Principal, op: RevokeShareLink, _prepared: None, context: CallContext
) -> ShareLinkRef:
    session = require_session(tx, principal, op, lock=True)
    if not share_links.delete(tx, session.log_id, op.link_id):
        raise NotFoundError("share link", op.link_id)
    _record(tx, principal, session, "link_revoked", context, {"link_id": op.link_id})
    return ShareLinkRef(session.session_id, op.link_id)


def _transfer(tx: Tx, principal: Principal, op: TransferSession, _prepared: None, context: CallContext) -> SessionInfo:
    session = require_session(tx, principal, op, lock=True)
    new_owner = _require_user(tx, session, op.user_id)
    if users.find_role(tx, user_name(op.user_id)) == "auditor":
        raise InvalidArgumentError("user_id", f"{op.user_id} is an auditor, who cannot open sessions; name a user")
    if not store.transfer(tx, session, new_owner, context.now):
        raise AlreadyExistsError(
            f"{op.user_id} already has a session {session.session_id}; transfer a fork of this one with another id",
            resource=session.session_id,
            type="session",
        )
    context.wake_workers()  # it is indexed again for its new owner
    tasks.transfer(tx, session.log_id, new_owner, session.uri, replace(session, owner_id=new_owner).uri, context.now)
    share_links.delete_all(tx, session.log_id)  # whoever has one may be the owner of before
    grants.delete(tx, session.log_id, new_owner)
    grants.set_owner(tx, session.log_id, new_owner)
    kept = to_bits(op.keep_rights)
    if kept:
        grants.insert_or_replace(
            *(tx, _address(replace(session, owner_id=new_owner)), session.owner_id, "", kept),
            granted_by=new_owner,
            now=context.now,
            lifetime=None,
        )
    moved = replace(session, owner_id=new_owner, rights=kept, updated_at=context.now)
    _record(tx, principal, moved, "transferred", context, {"user_id": op.user_id})
    return session_info.read_session_info(tx, moved)


def _address(session: StoredSession) -> SharedSession:
    return SharedSession(session.log_id, session.owner_id, session.session_id)


def _require_user(tx: Tx, session: StoredSession, user_id: str) -> str:
    """Return the internal id of another user than the owner.

    If the account has users with keys, the user must be one of them. Otherwise whoever gets the name later, also after
    a mistyped name, would have access.
    """
    name = user_id.partition(INTERNAL_ID_SEPARATOR)[0]
    internal_id = user_ids.current(tx, name)
    if user_id not in {name, internal_id} or not users.is_possible(tx, name):
        raise NotFoundError("user", user_id)
    if internal_id == session.owner_id:
        raise InvalidArgumentError("user_id", f"{user_id} owns the session and has all rights; name another user")
    return internal_id


def _micros(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * MICROS_PER_SECOND


def _record(
    tx: Tx, principal: Principal, session: StoredSession, kind: str, context: CallContext, data: dict[str, Any]
) -> None:
    changes.record(tx, session, kind, principal.user_id, context.now, data)


HANDLERS: dict[type, OperationHandler] = {
    ShareSession: OperationHandler(_share, writes=always),
    UnshareSession: OperationHandler(_unshare, writes=always),
    ListCollaborators: OperationHandler(_list_collaborators),
    CreateShareLink: OperationHandler(_create_link, writes=always),
    ListShareLinks: OperationHandler(_list_links),
    RevokeShareLink: OperationHandler(_revoke_link, writes=always),
    TransferSession: OperationHandler(_transfer, writes=always),
}
