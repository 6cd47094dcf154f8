"""The contracts of databases and clients, as test classes.

Inherit from a contract, provide its fixtures, and run pytest::

    from holdfast.testing.contract import ClientCommitContract, ClientContract, StoreContract

    class TestMyDatabase(StoreContract):
        @pytest.fixture
        def open_database(self): ...

    class TestMyClient(ClientContract):
        @pytest.fixture
        def connect_as(self): ...

        @pytest.fixture
        def client(self, connect_as):
            return connect_as("acme", "alice")

    class TestMyClientsCommits(ClientCommitContract):
        # connect_as and client as above, on a Holdfast with `worker_threads=0`
        @pytest.fixture
        def run_tasks(self): ...
"""

from holdfast.testing.contract.commits.auto_commits import AutoCommitContract
from holdfast.testing.contract.commits.background import BackgroundContract
from holdfast.testing.contract.commits.commits import CommitContract
from holdfast.testing.contract.commits.contexts import ContextContract
from holdfast.testing.contract.commits.long_archives import LongArchiveContract
from holdfast.testing.contract.commits.resummaries import ResummaryContract
from holdfast.testing.contract.commits.tasks import TaskContract
from holdfast.testing.contract.input import InputContract
from holdfast.testing.contract.recall.contexts import SearchContextContract
from holdfast.testing.contract.recall.indexing import IndexingContract, UnindexedContract
from holdfast.testing.contract.recall.searches import SearchContract, SharedSearchContract
from holdfast.testing.contract.recall.uses import UseContract
from holdfast.testing.contract.sessions.events import EventContract
from holdfast.testing.contract.sessions.exactly_once import ExactlyOnceContract
from holdfast.testing.contract.sessions.files import FileContract
from holdfast.testing.contract.sessions.forks import ForkContract
from holdfast.testing.contract.sessions.long_sessions import LongSessionContract
from holdfast.testing.contract.sessions.messages import MessageContract
from holdfast.testing.contract.sessions.providers import ProviderContract
from holdfast.testing.contract.sessions.sessions import SessionContract
from holdfast.testing.contract.sessions.tool_results import ToolResultContract
from holdfast.testing.contract.skills.skills import PublishedSkillContract, SkillContract
from holdfast.testing.contract.store import StoreContract
from holdfast.testing.contract.tenants.access import AccessContract
from holdfast.testing.contract.tenants.audit import AuditContract
from holdfast.testing.contract.tenants.revocation import RevocationContract
from holdfast.testing.contract.tenants.sharing import SharingContract
from holdfast.testing.contract.tenants.tenants import TenantContract
from holdfast.testing.contract.tenants.upkeep import UpkeepContract
from holdfast.testing.contract.transfers.transfers import TransferContract
from holdfast.testing.contract.tree.changes import FileChangeContract
from holdfast.testing.contract.tree.packs import PackContract
from holdfast.testing.contract.tree.patterns import PatternContract
from holdfast.testing.contract.tree.processing import ProcessingContract
from holdfast.testing.contract.tree.resources import ResourceContract


class ClientContract(
    SessionContract,
    MessageContract,
    ProviderContract,
    ExactlyOnceContract,
    ForkContract,
    ToolResultContract,
    InputContract,
    AccessContract,
    SharingContract,
    RevocationContract,
    AuditContract,
    TenantContract,
    UpkeepContract,
    EventContract,
    FileContract,
    TransferContract,
    FileChangeContract,
    PatternContract,
    LongSessionContract,
    BackgroundContract,
    IndexingContract,
    SearchContract,
    SharedSearchContract,
    SearchContextContract,
    SkillContract,
    PublishedSkillContract,
    ProcessingContract,
    PackContract,
    ResourceContract,
):
    """The contract of a client, embedded or remote, on a Holdfast with background workers.

    It needs two fixtures. `client` is a client of an empty Holdfast, with the user `alice` of the account `acme` and
    the role root. `connect_as(account, user, role="root", agent=None)` opens another client on the same Holdfast.
    An asynchronous client is tested through `holdfast.testing.awaited.Awaited`.
    """


class ClientCommitContract(
    CommitContract,
    ContextContract,
    TaskContract,
    ResummaryContract,
    AutoCommitContract,
    LongArchiveContract,
    UseContract,
    UnindexedContract,
):
    """The contract of a client for commits, contexts, background tasks and automatic commits.

    It needs the fixtures of `ClientContract`, on a Holdfast without background workers (`worker_threads=0`), so that
    the tests decide when a task runs. The fixture `run_tasks(**settings)` is a function that runs all due tasks of
    the same database with these settings and returns when they are done.
    """


__all__ = ["ClientCommitContract", "ClientContract", "StoreContract"]
