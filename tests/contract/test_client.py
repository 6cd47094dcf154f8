"""The client contract: embedded and over HTTP, synchronous and asynchronous, on both databases."""

from holdfast.testing.contract import ClientContract


class TestClient(ClientContract):
    pass
