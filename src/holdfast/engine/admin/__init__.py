"""Accounts, users, keys, the audit, and the state of the system."""
