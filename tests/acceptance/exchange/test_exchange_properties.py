"""Property tests: importing an export restores any sessions; any JSON is imported or rejected."""

import itertools
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Client, ContextPart, ImagePart, ProviderPart, Settings, TextPart, ToolPart
from holdfast.client.local import LocalTransport
from holdfast.errors import ConflictError, InvalidArgumentError
from holdfast.exchange import export_sessions, import_path
from holdfast.exchange.file_names import file_name
from holdfast.exchange.importing.comparison import batches
from holdfast.model.identity import Principal
from holdfast.model.messages import NewMessage

SMALL_OUTPUTS = Settings(tool_output_threshold=40, tool_output_preview=7)
NAMES = ["a", "A", "con:1", "b"]

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
metadata = st.dictionaries(text, value, max_size=3)
time = st.none() | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
output = value | st.builds(lambda piece, times: piece * times, text, st.integers(1, 30))
tool = st.builds(
    ToolPart,
    tool_id=st.sampled_from(["", "call_1", "Call_1", "call/2", "../../up"]) | text,
    tool_name=text,
    tool_input=value,
    tool_output=output,
    tool_status=st.sampled_from(["pending", "running", "completed", "error"]),
    duration_ms=st.none() | st.integers(0, 10) | st.floats(0, 1e6),
    prompt_tokens=st.none() | st.integers(0, 10),
    provider_fields=st.none() | metadata,
)
part = (
    st.builds(TextPart, text)
    | st.builds(ContextPart, uri=text, abstract=text, context_type=st.sampled_from(["memory", "resource", "skill"]))
    | st.builds(ImagePart, url=text, description=text, detail=text)
    | st.builds(ProviderPart, provider=text, block=metadata)
    | tool
)
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "parts": st.lists(part, min_size=1, max_size=3)},
    optional={
        "id": st.sampled_from(["m1", "m2", "M:3"]),
        "created_at": time,
        "peer_id": st.sampled_from(["ann", "_:bob@example.org", "0"]),
        "turn_id": text,
        "message_kind": text,
        "source_message_ids": st.lists(text, max_size=2),
        "metadata": metadata,
    },
)
config = st.fixed_dictionaries(
    {},
    optional={
        "memory_policy": st.sampled_from([{}, {"self": {"enabled": False}}, {"memory_types": ["events"]}]),
        "auto_commit_policy": st.sampled_from([{}, {"keep_recent_count": 3, "idle_timeout_seconds": 1.5}]),
        "memory_extraction_config": metadata,
    },
)
uri = st.text("abc/:é", min_size=1, max_size=8)
skill = st.fixed_dictionaries({"uri": uri}, optional={"input": value, "output": value, "success": st.booleans()})


messages = st.lists(message, max_size=3)
use = st.fixed_dictionaries({"contexts": st.lists(uri, max_size=3), "created_at": time}, optional={"skill": skill})
plan = st.fixed_dictionaries(
    {
        "origin": st.none() | st.integers(0, 2),
        "at": st.integers(0, 9),
        "created": st.fixed_dictionaries({"title": text, "metadata": metadata, "created_at": time}),
        "changed": st.fixed_dictionaries({}, optional={"title": text, "metadata": metadata}),
        "config": config,
        "first": messages,
        "uses": st.lists(use, max_size=2),
        "later": messages,
        "archived": st.booleans(),
        "end": st.sampled_from(["kept", "kept", "kept", "deleted", "recreated"]),
    }
)
plans = st.lists(plan, min_size=1, max_size=len(NAMES))


def create_sessions(client: Client, plans: list[dict[str, Any]]) -> set[str]:
    """Create the sessions; return the forks that an import cannot make forks again.

    Their origin was deleted, or it changed a metadata value that is null in the fork: an update cannot set null.
    """
    origins = {}
    for number, (name, plan) in enumerate(zip(NAMES, plans, strict=False)):
        if number and plan["origin"] is not None:
            origins[name] = NAMES[plan["origin"] % number]
            last = client.get_session(origins[name]).total_message_count
            client.fork_session(origins[name], plan["at"] % (last + 1), new_session_id=name)
        else:
            client.create_session(name, **plan["created"])
        add(client, name, plan["first"])
    for name, plan in zip(NAMES, plans, strict=False):
        client.update_session(name, **plan["changed"])
        client.update_session_config(name, **plan["config"])
        for use in plan["uses"]:
            client.session_used(name, **use)
        add(client, name, plan["later"])
        if plan["archived"]:
            client.update_session(name, state="archived")
    ended = {name: plan["end"] for name, plan in zip(NAMES, plans, strict=False) if plan["end"] != "kept"}
    for name, end in ended.items():
        client.delete_session(name)
        if end == "recreated":
            client.add_message(name, "user", "another session of the same name")
    return {
        name
        for name, origin in origins.items()
        if name not in ended and (origin in ended or _has_null_that_origin_lacks(client, name, origin))
    }


def _has_null_that_origin_lacks(client: Client, name: str, origin: str) -> bool:
    metadata, origin_metadata = client.get_session(name).metadata, client.get_session(origin).metadata
    return any(value is None and origin_metadata.get(key, "missing") is not None for key, value in metadata.items())


def add(client: Client, name: str, messages: list[dict[str, Any]]) -> None:
    for message in messages:
        with suppress(ConflictError):  # the id exists already
            client.batch_add_messages(name, [message])


def read_all(client: Client, orphans: set[str]) -> list[Any]:
    """Everything that can be read, in listing order, without times and ids that the server sets itself."""
    return [_read_session(client, row.session_id, row.session_id in orphans) for row in client.list_sessions()]


def _read_session(client: Client, session_id: str, orphan: bool) -> dict[str, Any]:
    info = client.get_session(session_id).to_dict()
    del info["updated_at"]
    if orphan:
        del info["forked_from"]
    session = client.session(session_id)
    results = client.list_tool_results(session_id, limit=1_000).tool_results
    return {
        **info,
        "messages": [message.to_dict() for message in session.messages],
        "uses": [{**usage.to_dict(), "id": ""} for usage in session.usage_records],
        "results": [result.to_dict() for result in results],
        "outputs": [client.read_tool_result(session_id, result.tool_result_id).content for result in results],
    }


def files(folder: Path, orphans: set[str]) -> dict[str, Any]:
    """The content of every file. The origin of orphaned forks is removed."""
    found: dict[str, Any] = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    for name in [name for name in found if name.endswith(".meta.json")]:
        meta = msgspec.json.decode(found[name])
        if meta["session_id"] in orphans:
            found[name] = {**meta, "forked_from": None}
    return found


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(plans=plans)
def check(connect: Callable[[str, str], Client], plans: list[dict[str, Any]]) -> None:
    account = f"account{next(NUMBERS)}"
    source, destination = connect("source", account), connect("destination", account)
    with tempfile.TemporaryDirectory() as scratch:
        orphans = create_sessions(source, plans)
        export_sessions(source, Path(scratch, "first"))
        report = import_path(destination, Path(scratch, "first"))
        assert {row.state for row in report.sessions} <= {"imported"}
        assert {row.session_id for row in report.sessions if row.reason} <= orphans
        assert read_all(destination, orphans) == read_all(source, orphans)

        export_sessions(destination, Path(scratch, "second"))
        assert files(Path(scratch, "second"), orphans) == files(Path(scratch, "first"), orphans)

        before = read_all(destination, set())
        again = import_path(destination, Path(scratch, "first"))
        assert {row.state for row in again.sessions} <= {"already there"}
        assert read_all(destination, set()) == before
        assert {row.state for row in import_path(source, Path(scratch, "first")).sessions} <= {"already there"}


NUMBERS = itertools.count(1)


def test_importing_an_export_and_exporting_the_import_preserve_everything(target: str, tmp_path: Path) -> None:
    """Each example has its own account in the same two databases: the one under test, and one on SQLite."""
    with (
        holdfast.connect(tmp_path / "origin.db", settings=SMALL_OUTPUTS) as origin,
        holdfast.connect(target, settings=SMALL_OUTPUTS) as copy,
    ):
        engines = {"source": origin._transport.engine, "destination": copy._transport.engine}  # type: ignore[attr-defined]

        clients: list[Client] = []  # a client that is dropped would close the engine

        def connect(which: str, account: str) -> Client:
            clients.append(Client(LocalTransport(engines[which], Principal(account, role="root"))))
            return clients[-1]

        check(connect)


names = st.sampled_from(["a", "A", "a.", "a:", "con", "Con", "CON.txt", "nul.a.b", "com1", "lpt9."]) | text


@given(st.lists(names, max_size=8, unique=True))
def test_different_ids_have_different_file_names_on_every_platform(ids: list[str]) -> None:
    names = {file_name(each).casefold() for each in ids}
    assert len(names) == len(ids)
    assert all(name.isascii() and len(name) < 140 and name.strip(". ") == name for name in names)
    assert not any(name.partition(".")[0] in {"con", "nul", "aux", "prn", "com1"} for name in names)


def test_the_order_of_metadata_keys_does_not_change_an_export(tmp_path: Path) -> None:
    for name, metadata in (("one", {"a": 1, "b": 2}), ("other", {"b": 2, "a": 1})):
        with holdfast.connect(":memory:") as client:
            client.create_session("chat", metadata=metadata, created_at="2020-02-02T02:02:00Z")
            export_sessions(client, tmp_path / name)
    assert files(tmp_path / "one", set()) == files(tmp_path / "other", set())


def test_batches_are_limited_in_number_and_size() -> None:
    small, large = (NewMessage(role="user", content="x" * size) for size in (1, 400_000))
    sizes = [len(batch.messages) for batch in batches([small] * 250 + [large] * 3)]
    assert sizes == [100, 100, 52, 1]


KEYS = """
    role type content text parts name id messages mapping current_node author message parent conversation session_1
    session_1_date_time speaker dia_id img_url tool_calls function arguments call_id image_url url created_at title
    metadata refusal function_call output source_message_ids sample_id create_time recipient
"""
key = st.sampled_from(KEYS.split())
word = st.sampled_from(
    ["user", "assistant", "tool", "text", "image_url", "function_call", "function_call_output", "a", "", "1", "\0"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | word,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(key, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=anything
    | st.lists(st.fixed_dictionaries({"role": word, "content": anything, "tool_calls": anything}), max_size=2)
    | st.fixed_dictionaries({"mapping": st.dictionaries(word, anything), "current_node": word})
    | st.fixed_dictionaries({"conversation": st.fixed_dictionaries({"session_1": anything, "speaker_a": anything})})
)
def test_any_json_is_imported_or_rejected_with_a_holdfast_error(value: Any) -> None:
    with holdfast.connect(":memory:") as client, suppress(InvalidArgumentError):
        report = import_path(client, None, text=json.dumps(value))
        for row in report.sessions:
            assert row.state == "imported" or row.reason
        assert {row.state for row in import_path(client, None, text=json.dumps(value)).sessions} <= {
            "already there",
            "failed",
        }
