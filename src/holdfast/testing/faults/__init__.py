"""Faults, made to order: killed processes, full and failing disks, power cuts, cut connections.

`workload` makes appends whose content follows from their name, and keeps the ledger of what became of each;
`processes`, `disks`, `powercut`, `proxy`, `locks` and `connections` do harm; `streams` reads through it all; `verify`
compares what is left with the ledger.
A backend of your own can be put to the same tests.
"""

from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, Ledger, attempt, retry_unanswered

__all__ = ["Append", "Ledger", "attempt", "retry_unanswered", "verify"]
