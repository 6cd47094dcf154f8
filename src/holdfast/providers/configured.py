"""Opens the model, the embedder and the reranker that the settings name."""

from collections.abc import Callable

from holdfast import forking
from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.providers import anthropic, openai
from holdfast.providers.base import ChatModel, Embedder
from holdfast.providers.limits import RateLimitedModel, RateLimiter
from holdfast.providers.minilm import MiniLmEmbedder
from holdfast.providers.remote_embedder import OpenAIEmbedder
from holdfast.providers.rerank import Reranker
from holdfast.providers.static_vectors import StaticEmbedder

_limiters: dict[tuple[object, ...], RateLimiter] = {}
_lock = forking.Lock()


def open_model(settings: Settings, estimate: Callable[[str], int]) -> RateLimitedModel | None:
    """Open the configured model with its rate limits, or return None if no provider is set.

    `estimate` estimates the number of tokens of a text.
    """
    if settings.model_provider == "none":
        return None
    return RateLimitedModel(_open_chat_model(settings), limiter_for(settings), estimate)


def open_embedder(settings: Settings) -> Embedder:
    if settings.embedder == "static":
        return StaticEmbedder()
    if settings.embedder == "minilm":
        if not settings.embedding_model_path:
            raise FailedPreconditionError(
                "embedder minilm needs the folder of its model; set HOLDFAST_EMBEDDING_MODEL_PATH"
            )
        return MiniLmEmbedder(settings.embedding_model_path)
    if not settings.embedding_model:
        raise FailedPreconditionError("embedder openai needs a model; set HOLDFAST_EMBEDDING_MODEL")
    return OpenAIEmbedder(
        settings.embedding_model,
        base_url=settings.embedding_base_url or openai.URL,
        api_key=settings.embedding_api_key,
        timeout=settings.model_timeout_seconds,
    )


def open_reranker(settings: Settings) -> Reranker | None:
    """Open the configured reranker, or return None if no URL is set."""
    if not settings.rerank_base_url:
        return None
    return Reranker(
        settings.rerank_base_url,
        model=settings.rerank_model,
        api_key=settings.rerank_api_key,
        timeout=settings.model_timeout_seconds,
    )


def limiter_for(settings: Settings) -> RateLimiter:
    """The rate limiter of the configured model. All clients of a process share it."""
    limits = settings.model_concurrency, settings.model_requests_per_minute, settings.model_tokens_per_minute
    model = settings.model_provider, settings.model_base_url, settings.model_api_key, settings.model_name
    with _lock:
        limiter = _limiters.get((*model, *limits))
        if limiter is None:
            concurrency, requests, tokens = limits
            limiter = RateLimiter(concurrency=concurrency, requests_per_minute=requests, tokens_per_minute=tokens)
            _limiters[*model, *limits] = limiter
        return limiter


def _open_chat_model(settings: Settings) -> ChatModel:
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
