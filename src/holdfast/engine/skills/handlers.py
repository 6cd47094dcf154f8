"""The handlers of all operations on skills."""

from holdfast.engine.gate.operation_handler import OperationHandler
from holdfast.engine.skills import adding, finding, publishing, reading

HANDLERS: dict[type, OperationHandler] = {
    **adding.HANDLERS,
    **reading.HANDLERS,
    **finding.HANDLERS,
    **publishing.HANDLERS,
}
