"""The state of the components, as tables for people and command lines, or as objects for programs."""

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import msgspec

from holdfast.config import Settings
from holdfast.engine.admin.queues import Scope, count_queues, visible_scope
from holdfast.engine.admin.text_tables import text_table
from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.search_statistics import SearchTotals
from holdfast.model.identity import Principal
from holdfast.model.system import Component, ComponentName, QueueCounts, SystemHealth
from holdfast.ops.system import ObserveComponent, ObserveSystem, StatusFormat
from holdfast.store import migrations
from holdfast.store.access.search import document_counts
from holdfast.store.database import Tx

ROOTS = ("agent", "resources", "system", "user")
"""The top-level folders of the tree."""
_QUEUE_HEADER = ("Queue", "Pending", "In Progress", "Processed", "Requeued", "Errors", "Total")


class Observation(NamedTuple):
    """What a component is asked with."""

    tx: Tx
    scope: Scope
    searches: SearchTotals
    context: CallContext


class Report(msgspec.Struct, frozen=True):
    """The state of a component in its three forms."""

    data: dict[str, Any]
    text: str
    summary: str
    has_errors: bool = False


def _storage(observed: Observation) -> Report:
    tx = observed.tx
    data = {"backend": tx.dialect.name, "schema": migrations.latest_applied(tx)}
    summary = f"{data['backend']}, schema {data['schema']}"
    return Report(data, text_table(("Backend", "Schema"), [tuple(data.values())]), summary)


def _queue(observed: Observation) -> Report:
    queues = {
        "writes": QueueCounts(observed.context.count_waiting_writes()),
        **count_queues(observed.tx, observed.scope, with_messages=False),
    }
    rows = [_queue_row(name, queue) for name, queue in queues.items()]
    total = ("TOTAL", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True)))
    names = ("queue", "pending", "in_progress", "processed", "requeued", "errors", "total")
    data = {
        "queues": [dict(zip(names, row, strict=True)) for row in rows],
        "summary": dict(zip(names[1:], total[1:], strict=True)),
    }
    failed = sum(queue.failed for queue in queues.values())
    summary = f"{total[1]} pending, {total[2]} in progress, {failed} failed"
    return Report(data, text_table(_QUEUE_HEADER, [*rows, total]), summary, has_errors=failed > 0)


def _queue_row(name: str, queue: QueueCounts) -> tuple[str, int, int, int, int, int, int]:
    total = queue.pending + queue.in_progress + queue.processed + queue.failed
    return name, queue.pending, queue.in_progress, queue.processed, queue.requeue_count, queue.failed, total


def _index(observed: Observation) -> Report:
    tx, scope = observed.tx, observed.scope
    documents, vectors = document_counts.count_documents(tx, *scope), document_counts.count_vectors(tx, *scope)
    data = {
        "backend": tx.dialect.name,
        "collection": "documents",
        "index": "text and vectors",
        "documents": documents,
        "vector_count": vectors,
        "status": "ready",
    }
    header = ("Collection", "Index Count", "Vector Count", "Status", "Documents")
    rows = [("documents", 1, vectors, "ready", documents), ("TOTAL", 1, vectors, "", documents)]
    return Report(data, text_table(header, rows), f"{documents} documents, {vectors} vectors")


def _models(observed: Observation) -> Report:
    settings = observed.context.settings
    data = {"vlm": [_language_model(settings)], "embedding": [_embedder(settings)], "rerank": _rerankers(settings)}
    titles = {"vlm": "VLM Models:", "embedding": "Embedding Models:", "rerank": "Rerank Models:"}
    tables = [
        f"{title}\n{text_table(('Model', 'Provider', 'Status'), [tuple(model.values()) for model in data[name]])}"
        for name, title in titles.items()
        if data[name]
    ]
    if settings.model_provider == "none":
        summary = "no model is configured; none is required"
    else:
        summary = f"{settings.model_provider} {settings.model_name}, at most {settings.model_concurrency} calls at once"
    return Report(data, "\n\n".join(tables), summary)


def _language_model(settings: Settings) -> dict[str, str]:
    if settings.model_provider == "none":
        return {"Model": "local summaries", "Provider": "holdfast", "Status": "ready"}
    return {"Model": settings.model_name or "default", "Provider": settings.model_provider, "Status": "configured"}


def _embedder(settings: Settings) -> dict[str, str]:
    is_remote = settings.embedder == "openai"
    return {
        "Model": (settings.embedding_model or "default") if is_remote else settings.embedder,
        "Provider": settings.embedder if is_remote else "holdfast",
        "Status": "configured" if is_remote else "ready",
    }


def _rerankers(settings: Settings) -> list[dict[str, str]]:
    if settings.rerank_base_url is None:
        return []
    return [{"Model": settings.rerank_model or "default", "Provider": "http", "Status": "configured"}]


def _lock(observed: Observation) -> Report:
    waiting = observed.context.count_waiting_writes()
    data = {"active_locks": 0, "waiting_locks": waiting}
    return Report(data, "No active locks", "locks of the database, held during a transaction")


def _retrieval(observed: Observation) -> Report:
    searches = observed.searches
    zero_rate = searches.without_result / searches.queries if searches.queries else 0.0
    score = searches.scores / searches.hits if searches.hits else 0.0
    latency = searches.seconds * 1_000 / searches.queries if searches.queries else 0.0
    data = {
        "total_queries": searches.queries,
        "total_results": searches.hits,
        "zero_result_rate": round(zero_rate, 4),
        "avg_score": round(score, 4),
        "avg_latency_ms": round(latency, 3),
    }
    rows = [
        ("Total Queries", str(searches.queries)),
        ("Total Results", str(searches.hits)),
        ("Zero-Result Rate", f"{zero_rate:.1%}"),
        ("Average Score", f"{score:.3f}"),
        ("Average Latency", f"{latency:.1f} ms"),
    ]
    summary = f"{searches.queries} searches since the start, {zero_rate:.1%} without a result"
    return Report(data, text_table(("Metric", "Value"), rows), summary)


def _filesystem(_observed: Observation) -> Report:
    mounts = [f"viking://{root}" for root in ROOTS]
    text = "\n".join(f"Mount: {mount}" for mount in mounts)
    return Report({"mounts": mounts}, text, "the tree is in the database")


_REPORTS: dict[ComponentName, Callable[[Observation], Report]] = {
    "storage": _storage,
    "queue": _queue,
    "vikingdb": _index,
    "models": _models,
    "lock": _lock,
    "retrieval": _retrieval,
    "filesystem": _filesystem,
}


def _component(name: ComponentName, observed: Observation, format: StatusFormat) -> Component:
    report = _REPORTS[name](observed)
    return Component(
        name=name,
        is_healthy=True,
        has_errors=report.has_errors,
        status=report.data if format == "json" else report.text,
        summary=report.summary,
    )


def _observation(tx: Tx, principal: Principal, context: CallContext) -> Observation:
    scope = visible_scope(principal)
    return Observation(tx, scope, context.search_statistics.totals(*scope), context)


def _observe_component(
    tx: Tx, principal: Principal, op: ObserveComponent, _prepared: None, context: CallContext
) -> Component:
    return _component(op.component, _observation(tx, principal, context), op.format)


def _observe_system(
    tx: Tx, principal: Principal, op: ObserveSystem, _prepared: None, context: CallContext
) -> SystemHealth:
    observed = _observation(tx, principal, context)
    components: dict[str, Component] = {name: _component(name, observed, op.format) for name in get_args(ComponentName)}
    return SystemHealth(is_healthy=True, errors=[], components=components)


HANDLERS: dict[type, OperationHandler] = {
    ObserveComponent: OperationHandler(_observe_component),
    ObserveSystem: OperationHandler(_observe_system),
}
