"""The details of a session, read from several tables."""

from typing import get_args

import msgspec

from holdfast.model.access import to_rights, user_name
from holdfast.model.identity import UserRef
from holdfast.model.sessions import Fork, MemoryType, SessionInfo
from holdfast.model.summaries import EmbeddingUsage
from holdfast.store.database import Tx
from holdfast.store.tables import archives, usages
from holdfast.store.tables.sessions import StoredSession, decode_config, decode_metadata
from holdfast.store.timestamps import from_micros


def read_session_info(tx: Tx, session: StoredSession) -> SessionInfo:
    contexts_used, skills_used = usages.totals(tx, session.log_id)
    archive_totals = archives.totals(tx, session.log_id)
    config = decode_config(session.config)
    policy = config.auto_commit_policy
    return SessionInfo(
        session_id=session.session_id,
        uri=session.uri,
        user=UserRef(tx.account, user_name(session.owner_id)),
        title=session.title,
        metadata=decode_metadata(session.metadata),
        state=session.state,
        created_at=from_micros(session.created_at),
        updated_at=from_micros(session.changed_at),
        last_message_at=None if session.last_message_at is None else from_micros(session.last_message_at),
        message_count=session.live_count,  # only live messages; the total includes archived ones
        total_message_count=session.last_seq,  # messages are numbered from 1 without gaps
        pending_tokens=session.tokens_total - session.tokens_archived,
        contexts_used=contexts_used,
        skills_used=skills_used,
        forked_from=None if session.forked_from is None else Fork(session.forked_from, session.fork_seq),
        commit_count=archive_totals.done,
        last_commit="" if archive_totals.last_at is None else msgspec.to_builtins(from_micros(archive_totals.last_at)),
        memories_extracted=dict.fromkeys((*get_args(MemoryType), "total"), 0),  # memories are not extracted yet
        llm_token_usage=archive_totals.usage,
        embedding_token_usage=EmbeddingUsage(archive_totals.embedding_tokens),
        keep_recent_count=(policy and policy.keep_recent_count) or 0,
        memory_policy=config.memory_policy,
        auto_commit_policy=policy,
        memory_extraction_config=config.memory_extraction_config,
        owner=session.owner_id,
        rights=to_rights(session.rights),
    )
