"""The contract of commits, step by step: nobody works in the background unless a test says so."""

import pytest

from holdfast.config import Settings
from holdfast.testing.contract.autocommits import AutoCommitContract
from holdfast.testing.contract.commits import CommitContract
from holdfast.testing.contract.contexts import ContextContract
from holdfast.testing.contract.tasks import TaskContract


class TestCommits(CommitContract, ContextContract, TaskContract, AutoCommitContract):
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(worker_threads=0)
