"""The engine: the only code that opens a transaction or calls a model."""

from holdfast.engine.engine import Engine

__all__ = ["Engine"]
