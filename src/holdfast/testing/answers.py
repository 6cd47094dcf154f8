"""Deterministic answers of the fake model: the same prompt gets the same answer."""

import hashlib
import re
from contextlib import suppress
from typing import Any

import msgspec

DIMENSIONS = 16
TURN = re.compile(r"^\[(m\d+)\] (\w+): (.*)$", re.MULTILINE)
"""A turn of the conversation in a prompt: alias, role and text."""


def summary_answer(body: dict[str, Any], prompt: str) -> str:
    """JSON that fits the schema of the request, filled from the conversation in the prompt. Without a schema, prose."""
    schema = _schema(body, prompt)
    if schema is None:
        return prose_answer(prompt)
    compact = msgspec.json.encode(_fill(schema, "", TURN.findall(prompt))).decode()
    return compact.replace('],"', '], "')  # a model does not write compact JSON


def prose_answer(prompt: str) -> str:
    turns = TURN.findall(prompt)
    return f"Sure! They talked about this: {turns[0][2] if turns else prompt[:60]}"


def embed(text: str) -> list[float]:
    """A vector derived from a hash of the text. It is not normalised."""
    return [byte / 32 - 4 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


def embeddings_body(request: dict[str, Any]) -> dict[str, Any]:
    """The response to an embeddings request: a vector for each text, in another order."""
    rows = [
        {"object": "embedding", "index": index, "embedding": embed(text)} for index, text in enumerate(request["input"])
    ]
    return {"object": "list", "data": rows[::-1], "model": request["model"]}


def rerank_body(request: dict[str, Any]) -> Any:
    """The response to a rerank request: the share of the query's words that each text has. With `texts`, a list."""
    is_bare = "texts" in request
    texts = request["texts" if is_bare else "documents"]
    words = set(request["query"].lower().split())
    scores = [len(words & set(text.lower().split())) / max(1, len(words)) for text in texts]
    if is_bare:
        return [{"index": index, "score": score} for index, score in enumerate(scores)]
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    results.sort(key=lambda result: -float(result["relevance_score"]))
    return {"id": "rerank-1", "results": results[: request["top_n"]]}


def openai_body(request: dict[str, Any], prompt: str, text: str, *, truncated: bool) -> dict[str, Any]:
    """The response to a chat request. Token counts are derived from the lengths of the texts."""
    prompt_tokens, completion_tokens = len(prompt) // 3 + 7, len(text) // 3 + 1
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length" if truncated else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": prompt_tokens // 2},
            "completion_tokens_details": {"reasoning_tokens": completion_tokens // 2},
        },
    }


def anthropic_body(request: dict[str, Any], prompt: str, text: str, *, truncated: bool) -> dict[str, Any]:
    """The response to a messages request. Token counts are derived from the lengths of the texts."""
    prompt_tokens, completion_tokens = len(prompt) // 3 + 7, len(text) // 3 + 1
    block: dict[str, Any] = {"type": "text", "text": text}
    if "tools" in request:
        tool_input = {}
        with suppress(msgspec.DecodeError):
            tool_input = msgspec.json.decode(text)
        tool_name = request["tools"][0]["name"]
        block = {"type": "tool_use", "id": "toolu_1", "name": tool_name, "input": tool_input}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [block],
        "stop_reason": "max_tokens" if truncated else "end_turn",
        "usage": {
            "input_tokens": prompt_tokens - prompt_tokens // 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": prompt_tokens // 2,
            "output_tokens": completion_tokens,
        },
    }


def _schema(body: dict[str, Any], prompt: str) -> dict[str, Any] | None:
    if "output_config" in body:
        return body["output_config"]["format"]["schema"]  # type: ignore[no-any-return]
    if "tools" in body:
        return body["tools"][0]["input_schema"]  # type: ignore[no-any-return]
    if body.get("response_format", {}).get("type") == "json_schema":
        return body["response_format"]["json_schema"]["schema"]  # type: ignore[no-any-return]
    in_prompt = re.search(r"JSON schema:\n(\{.*\})$", prompt, re.MULTILINE)
    return msgspec.json.decode(in_prompt[1]) if in_prompt else None


def _fill(schema: dict[str, Any], name: str, turns: list[tuple[str, str, str]]) -> Any:
    """A value that fits a schema. A list has an item for each turn of its role; `sources` cites the turn."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {key: _fill(inner, key, turns) for key, inner in schema.get("properties", {}).items()}
        case "array" if name == "sources":
            return [alias for alias, _, _ in turns[:1]]
        case "array":
            return [_fill(schema["items"], "text", [turn]) for turn in _turns_of(name, turns)]
        case "string":
            return _text(name, turns)
    return {"integer": 0, "number": 0, "boolean": False}.get(schema.get("type", ""))


def _turns_of(name: str, turns: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    role = {"requests": "user", "steps": "assistant", "facts": "assistant", "constraints": "user"}.get(name)
    return [turn for turn in turns if turn[1] == role][:3]


def _text(name: str, turns: list[tuple[str, str, str]]) -> str:
    words = (turns[-1 if name in {"result", "status"} else 0][2] if turns else "nothing was said").split()
    return " ".join(words)[:200] if name in {"text", ""} else " ".join(words[:12])
