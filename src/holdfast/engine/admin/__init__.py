"""Accounts, users, API keys, the audit log, and the state of the system."""
