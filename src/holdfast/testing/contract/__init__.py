"""The contracts, as test classes. Inherit one, give it its fixtures, and pytest runs it on your implementation.

from holdfast.testing.contract import StoreContract

class TestMyDatabase(StoreContract):
    @pytest.fixture
    def open_database(self): ...
"""

from holdfast.testing.contract.access import AccessContract
from holdfast.testing.contract.background import BackgroundContract
from holdfast.testing.contract.events import EventContract
from holdfast.testing.contract.exactly_once import ExactlyOnceContract
from holdfast.testing.contract.files import FileContract
from holdfast.testing.contract.forks import ForkContract
from holdfast.testing.contract.input import InputContract
from holdfast.testing.contract.messages import MessageContract
from holdfast.testing.contract.providers import ProviderContract
from holdfast.testing.contract.sessions import SessionContract
from holdfast.testing.contract.store import StoreContract
from holdfast.testing.contract.tenants import TenantContract
from holdfast.testing.contract.toolresults import ToolResultContract
from holdfast.testing.contract.upkeep import UpkeepContract


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
