"""The contracts, as test classes. Inherit one, give it its fixtures, and pytest runs it on your implementation.

from holdfast.testing.contract import StoreContract

class TestMyDatabase(StoreContract):
    @pytest.fixture
    def open_database(self): ...
"""

from holdfast.testing.contract.commits.background import BackgroundContract
from holdfast.testing.contract.input import InputContract
from holdfast.testing.contract.sessions.events import EventContract
from holdfast.testing.contract.sessions.exactly_once import ExactlyOnceContract
from holdfast.testing.contract.sessions.files import FileContract
from holdfast.testing.contract.sessions.forks import ForkContract
from holdfast.testing.contract.sessions.messages import MessageContract
from holdfast.testing.contract.sessions.providers import ProviderContract
from holdfast.testing.contract.sessions.sessions import SessionContract
from holdfast.testing.contract.sessions.toolresults import ToolResultContract
from holdfast.testing.contract.store import StoreContract
from holdfast.testing.contract.tenants.access import AccessContract
from holdfast.testing.contract.tenants.tenants import TenantContract
from holdfast.testing.contract.tenants.upkeep import UpkeepContract


class ClientContract(
    SessionContract,
    MessageContract,
    ProviderContract,
    ExactlyOnceContract,
    ForkContract,
    ToolResultContract,
    InputContract,
    AccessContract,
    TenantContract,
    UpkeepContract,
    EventContract,
    FileContract,
    BackgroundContract,
):
    """What every client must do, whatever lies between it and the database.

    Needs the fixtures `client`, an empty Holdfast used as user `alice` of account `acme`, and `connect_as`,
    a function of account, user and role that opens another client on the same Holdfast.
    By default `connect_as` connects as root. An asynchronous client takes part behind `testing.awaited.Awaited`.
    """


__all__ = ["ClientContract", "StoreContract"]
