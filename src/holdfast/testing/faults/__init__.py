"""Fault injection: killed processes, full and failing disks, power cuts, cut connections.

`workload` makes appends whose content can be computed from their name, and logs the result of each. `processes`,
`disks`, `power_cuts`, `proxy`, `locks` and `connections` inject faults. `streams` reads events while they happen.
`verify` compares the database with that log. `damage` flips bits of a file; `backups` writes while a backup is made.
Authors of a database driver can use it for their own tests.
"""

from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, AppendLog, attempt, retry_unacknowledged

__all__ = ["Append", "AppendLog", "attempt", "retry_unacknowledged", "verify"]
