"""Faults, made to order: killed processes, full and failing disks, power cuts, cut connections.

`workload` makes appends whose content follows from their name and keeps the ledger of what became of them; the other
modules do harm; `verify` compares what is left with the ledger. A backend of your own can be put to the same tests.
"""
