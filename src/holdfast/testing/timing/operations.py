"""The CPU time of every operation of the table: on hostile fields, and on sessions with hostile conversations."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from holdfast.computing.job import JobContext
from holdfast.computing.summaries import (
    COMBINE,
    RENDER,
    SUMMARISE,
    EarlierSummaries,
    MessagesToSummarise,
    SummariesToCombine,
    SummaryToRender,
)
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.commit_task import text_limits
from holdfast.engine.commits.tool_outputs import OutputLimits, restore_outputs
from holdfast.engine.resources import watching
from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.http.endpoint import parse_body
from holdfast.model.archives import archive_id
from holdfast.model.identity import Principal
from holdfast.model.messages import Message
from holdfast.model.tree.resources import AddPayload, ResourceSource
from holdfast.ops.administration import CreateAccount, CreateUser, ListKeys
from holdfast.ops.audit import ListAudit
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessages, CreateSession, GetMessages, ListToolResults, RecordUse
from holdfast.ops.sharing import CreateShareLink, ShareSession
from holdfast.ops.system import WaitUntilIdle
from holdfast.ops.table import OPERATIONS, Operation, fields_of
from holdfast.ops.tasks import CancelTask, ListTasks
from holdfast.ops.tree.attributes import LinkFiles, SetTags
from holdfast.ops.tree.file_changes import MakeFolder, ReadHistory, RemoveFile, RestoreFile, WriteFile
from holdfast.ops.tree.files import ReadAbstract, ReadOverview
from holdfast.ops.tree.packs import ImportPack, ListPackNodes, RestorePack
from holdfast.ops.tree.reindexing import ReindexFiles
from holdfast.ops.tree.resources import (
    AddResource,
    DeleteWatch,
    DeleteWatchOf,
    GetWatch,
    ListWatches,
    TriggerWatch,
    TriggerWatchOf,
    UpdateWatch,
    UpdateWatchOf,
)
from holdfast.ops.tree.skills import AddSkill, PublishSkill
from holdfast.ops.tree.uploads import PART_BYTES, AppendUpload, FinishUpload, StartUpload
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.tables.tree import roots
from holdfast.testing.example_packs import example_packs
from holdfast.testing.examples import example_operation
from holdfast.testing.timing.hostile_values import JSON_VALUES, TEXTS

CALLER = Principal("acme", "alice", "root")
SESSION = "chat"
BATCH = 100
OTHER_ACCOUNT = "other"
WAITING = {WaitUntilIdle}
"""Operations that wait for tasks. Only their fields are measured."""
FILE = "viking://resources/notes/a.md"
OTHER_FILE = "viking://resources/notes/b.md"
WATCHED = "viking://resources/watched"
REMOVED_FILE = "viking://resources/notes/c.md"
FILE_OPERATIONS: dict[type, str] = {
    WriteFile: FILE,
    RemoveFile: FILE,
    ReadHistory: FILE,
    ReindexFiles: FILE,
    ListPackNodes: FILE,
    SetTags: FILE,
    RestoreFile: REMOVED_FILE,
    MakeFolder: "viking://resources/notes/folder",
}
"""Operations that need the address of a stored file, not of a session."""
Call = Callable[[], object]

_encode = msgspec.json.encode


class _RollBackError(Exception):
    """Ends the transaction of a measured call, so that it can be measured again."""


def field_cases() -> Iterator[tuple[type[Operation[Any]], str, str]]:
    """Return each operation with each of its fields and the name of each hostile value."""
    for cls in OPERATIONS:
        for field in cls.__struct_fields__:
            for name in (*TEXTS, *JSON_VALUES):
                yield cls, field, name


def call_with_field(engine: Engine, cls: type[Operation[Any]], field: str, name: str, size: int) -> Call:
    """Return a call of an operation with a hostile value in one field, from the body of a request to its response."""
    make = TEXTS.get(name) or JSON_VALUES[name]
    return call_with_value(engine, cls, field, _encode(make(size)))


def call_with_value(engine: Engine, cls: type[Operation[Any]], field: str, encoded: bytes) -> Call:
    """Return a call of an operation with an encoded value in one field."""
    fields = {**example_fields(cls), field: msgspec.Raw(encoded)}
    return partial(_call, engine, cls, _encode(fields))


def example_fields(cls: type[Operation[Any]], **values: Any) -> dict[str, Any]:
    """Return the fields of an example of an operation on the session, or with other values."""
    known = {
        "session_id": "new" if cls is CreateSession else SESSION,
        "account_id": "new" if cls is CreateAccount else OTHER_ACCOUNT,
        "user_id": "new" if cls is CreateUser else "admin",
        "archive_id": archive_id(1),
        "uri": f"viking://session/{SESSION}",
        "ref": "1-9",
    }
    fields: dict[str, Any] = msgspec.to_builtins(fields_of(example_operation(cls, **{**known, **values})))
    return fields


def calls_on_conversation(engine: Engine, messages: list[dict[str, Any]]) -> Iterator[tuple[str, Call]]:
    """Store a conversation, in a finished archive, in a pending one and live, and return calls of all operations.

    The results are as large as the operations allow.
    """
    engine.call(CALLER, CreateAccount(account_id=OTHER_ACCOUNT))
    _store(engine, messages)
    engine.call(CALLER, ShareSession(session_id=SESSION, user_id="admin"))
    _store_files(engine, messages)
    values = {
        "limit": 1_000,
        "token_budget": 10_000_000,
        "tool_result_id": _tool_result_id(engine),
        "key_id": engine.call(CALLER, ListKeys(account_id=OTHER_ACCOUNT, user_id="admin"))[0].key_id,
        "link_id": engine.call(CALLER, CreateShareLink(session_id=SESSION)).id,
        "ids": [engine.call(CALLER, ListAudit()).records[0].id],
        "upload_id": engine.call(CALLER, StartUpload(name="notes.md")).upload_id,
        "level_limit": 100,
        "recursive": True,
        "show_all_hidden": True,
    }
    resources = _store_resource(engine, messages)
    tasks = {task.status: task.task_id for task in engine.call(CALLER, ListTasks())}
    done, pending = tasks["completed"], tasks.get("pending", tasks["completed"])
    for cls in OPERATIONS.keys() - WAITING:
        for variant in _variants(cls):
            task_id = pending if cls is CancelTask else done
            known = {**values, **resources.get(cls, {}), "task_id": task_id, **variant}
            fields = example_fields(cls, **known)
            yield f"{cls.__name__}{variant or ''}", partial(_call, engine, cls, _encode(fields))


def _variants(cls: type[Operation[Any]]) -> list[dict[str, Any]]:
    """Return values of the fields that decide how much of a session an operation reads."""
    names = cls.__struct_fields__
    if "q" in names:
        words = " ".join(f"w{number:x}" for number in range(90))
        return [{"q": q} for q in ("a" * 900 + "b", words, "a_" * 15 + "a", "不要" * 400, "a é不", "never tabs")]
    if cls in FILE_OPERATIONS:
        return [{"uri": FILE_OPERATIONS[cls]}]
    if "uri" in names and cls not in {ReadAbstract, ReadOverview}:
        files = ("", "/messages.jsonl", "/history/archive_001/messages.jsonl", "/tools/call_0/tool.json", "/.meta.json")
        return [{"uri": f"viking://session/{SESSION}{file}"} for file in files]
    if "ref" in names:
        return [{"ref": archive_id(1)}, {"ref": ", ".join(f"#{number}" for number in range(1, 120, 2))}]
    if "messages" in names:
        return [{"messages": [{"role": "user", "content": "a", "id": "id_0"}]}]
    return [{}]


def calls_on_summaries(messages: list[Message]) -> Iterator[tuple[str, Call]]:
    """Return the computations of a commit of a conversation, except those that only a model's limits affect."""
    embed = StaticEmbedder().embed
    context = JobContext(lambda texts: embed(texts).vectors, lambda: None)
    to_summarise = MessagesToSummarise(messages)
    yield "summarise", partial(SUMMARISE.run, to_summarise, context)
    summary = SUMMARISE.run(to_summarise, context)
    yield "combine", partial(COMBINE.run, SummariesToCombine([summary, summary], to_summarise), context)
    size = sum(message.tokens for message in messages)
    earlier = EarlierSummaries(summary, summary, "before")
    to_render = SummaryToRender(summary, 1, max(1, len(messages)), size, earlier, None, text_limits(Settings()))
    yield "render", partial(RENDER.run, to_render, context)


def messages_to_summarise(engine: Engine) -> list[Message]:
    """Return all messages of the session, as a commit reads them."""
    found: list[Message] = []
    next_seq: int | None = 1
    while next_seq is not None:
        page = engine.call(CALLER, GetMessages(session_id=SESSION, first=next_seq, limit=10_000))
        found += page.messages
        next_seq = page.next_seq
    return engine.db.read(CALLER.account_id, lambda tx: restore_outputs(tx, found, OutputLimits()))


def are_accepted(messages: list[dict[str, Any]]) -> bool:
    """Return whether a conversation is within the limits of messages."""
    engine = Engine(SqliteDatabase(":memory:"))
    try:
        store(engine, messages)
    except InvalidArgumentError:
        return False
    finally:
        engine.close()
    return True


def store(engine: Engine, messages: list[dict[str, Any]]) -> None:
    """Append a conversation to the session."""
    for at in range(0, len(messages), BATCH):
        batch: Any = messages[at : at + BATCH]
        engine.call(CALLER, AddMessages(session_id=SESSION, messages=batch))


def _store(engine: Engine, messages: list[dict[str, Any]]) -> None:
    for committed in (True, True, False):
        store(engine, messages)
        engine.call(CALLER, RecordUse(session_id=SESSION, contexts=["viking://x"] * 100))
        if committed:
            engine.call(CALLER, CommitSession(session_id=SESSION))
        if engine.workers is None:
            _run_due_tasks(engine)


def _store_files(engine: Engine, messages: list[dict[str, Any]]) -> None:
    """Store a conversation in files, with a version, a relation and a removed file."""
    text = _encode(messages).decode()
    for uri in (FILE, OTHER_FILE, REMOVED_FILE):
        engine.call(CALLER, WriteFile(uri=uri, content=text))
    engine.call(CALLER, WriteFile(uri=FILE, content="\n", mode="append"))
    engine.call(CALLER, RemoveFile(uri=REMOVED_FILE))
    engine.call(CALLER, LinkFiles(from_uri=FILE, to_uris=OTHER_FILE))
    skill = AddSkill(data={"name": "x", "description": text[:1_000], "content": text[:900_000]})
    for caller in (CALLER, Principal("acme", "admin", "root")):
        engine.call(caller, skill)
    engine.call(CALLER, PublishSkill(name="x"))


def _store_resource(engine: Engine, messages: list[dict[str, Any]]) -> dict[type, dict[str, Any]]:
    """Upload a conversation, and watch a resource. Return values for the operations on them."""
    temp_file_id = _upload(engine, "notes.md", _encode(messages)[:PART_BYTES])
    source = ResourceSource(kind="url", location="https://docs.example/", name="docs")
    payload = AddPayload(author="alice", root=roots.RESOURCES, path="watched", uri=WATCHED, source=source)
    principal = msgspec.structs.replace(CALLER, internal_id=CALLER.user_id)
    context = engine.new_context()
    engine.db.write(
        CALLER.account_id, lambda tx: watching.start_watch(tx, principal, payload, 60.0, "task_none", context)
    )
    watch_id = engine.call(CALLER, ListWatches()).tasks[0].task_id
    values: dict[type, dict[str, Any]] = {AddResource: {"temp_file_id": temp_file_id}}
    for pack_operation, data in ((ImportPack, example_packs().folder), (RestorePack, example_packs().backup)):
        values[pack_operation] = {"temp_file_id": _upload(engine, "x.ovpack", data), "on_conflict": "overwrite"}
    for cls in (UpdateWatchOf, DeleteWatchOf, TriggerWatchOf):
        values[cls] = {"to_uri": WATCHED}
    for by_id in (GetWatch, UpdateWatch, DeleteWatch, TriggerWatch):
        values[by_id] = {"watch_id": watch_id}
    return values


def _upload(engine: Engine, name: str, data: bytes) -> str:
    upload = engine.call(CALLER, StartUpload(name=name))
    engine.call(CALLER, AppendUpload(upload_id=upload.upload_id, number=0, data=data))
    return engine.call(CALLER, FinishUpload(upload_id=upload.upload_id)).temp_file_id


def _run_due_tasks(engine: Engine) -> None:
    engine.start_workers(polls=False)
    assert engine.workers is not None
    engine.workers.close(600)


def _tool_result_id(engine: Engine) -> str:
    listed = engine.call(CALLER, ListToolResults(session_id=SESSION)).tool_results
    return listed[0].tool_result_id if listed else "none"


def _call(engine: Engine, cls: type[Operation[Any]], body: bytes) -> object:
    """Parse and check a request, run its transaction, encode the result, and roll the transaction back."""
    try:
        prepared = engine.prepare(engine.check(CALLER, cls, parse_body(body)))
        database = engine.db

        def run(tx: Any) -> None:
            _encode(prepared._transaction(tx))
            raise _RollBackError  # noqa: TRY301 - the database must see it

        (database.write if prepared.writes else database.read)(prepared.account, run)
    except (_RollBackError, HoldfastError) as error:
        return error
    return None


def has_succeeded(result: object) -> bool:
    """Whether a call ended in its rollback, not in an error."""
    return isinstance(result, _RollBackError)
