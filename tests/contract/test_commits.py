"""The contract of commits, step by step: nobody works in the background unless a test says so."""

import pytest

from holdfast.config import Settings
from holdfast.testing.contract.commits.autocommits import AutoCommitContract
from holdfast.testing.contract.commits.commits import CommitContract
from holdfast.testing.contract.commits.contexts import ContextContract
from holdfast.testing.contract.commits.tasks import TaskContract


class TestCommits(CommitContract, ContextContract, TaskContract, AutoCommitContract):
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(worker_threads=0)
