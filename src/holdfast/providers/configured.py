"""Which model and which embedder the settings name."""

from collections.abc import Callable

from holdfast import forking
from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.providers import anthropic, openai
from holdfast.providers.base import ChatModel, Embedder
from holdfast.providers.limits import LimitedModel, Limiter
from holdfast.providers.static_vectors import StaticVectors

_limiters: dict[tuple[object, ...], Limiter] = {}
_lock = forking.Lock()


def open_model(settings: Settings, estimate: Callable[[str], int]) -> LimitedModel | None:
    """The model that the settings name, within their limits, or None. `estimate` tells the tokens of a text."""
    if settings.model_provider == "none":
        return None
    return LimitedModel(_model(settings), limiter_for(settings), estimate)


def open_embedder(settings: Settings) -> Embedder:
    if settings.embedder == "static":
        return StaticVectors()
    if not settings.embedding_model:
        raise FailedPreconditionError("embedder openai needs a model; set HOLDFAST_EMBEDDING_MODEL")
    return openai.OpenAIEmbedder(
        settings.embedding_model,
        base_url=settings.embedding_base_url or openai.URL,
        api_key=settings.embedding_api_key,
        timeout=settings.model_timeout_seconds,
    )


def limiter_for(settings: Settings) -> Limiter:
    """The one limiter of this process for that model, however many clients use it."""
    limits = settings.model_concurrency, settings.model_requests_per_minute, settings.model_tokens_per_minute
    whose = settings.model_provider, settings.model_base_url, settings.model_api_key, settings.model_name
    with _lock:
        found = _limiters.get((*whose, *limits))
        if found is None:
            concurrency, requests, tokens = limits
            found = Limiter(concurrency=concurrency, requests_per_minute=requests, tokens_per_minute=tokens)
            _limiters[*whose, *limits] = found
        return found


def _model(settings: Settings) -> ChatModel:
    provider = settings.model_provider
    if not settings.model_name:
        raise FailedPreconditionError(f"model_provider {provider} needs a model; set HOLDFAST_MODEL_NAME")
    if provider == "openai":
        return openai.OpenAIChat(
            settings.model_name,
            base_url=settings.model_base_url or openai.URL,
            api_key=settings.model_api_key,
            timeout=settings.model_timeout_seconds,
        )
    return anthropic.AnthropicChat(
        settings.model_name,
        base_url=settings.model_base_url or anthropic.URL,
        api_key=settings.model_api_key,
        timeout=settings.model_timeout_seconds,
    )
