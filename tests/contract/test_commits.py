"""The client contract for commits. Background tasks run only when a test starts them."""

import pytest

from holdfast.config import Settings
from holdfast.testing.contract import ClientCommitContract


class TestCommits(ClientCommitContract):
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(worker_threads=0)
