"""The asynchronous client. Generated from `client/sync` by `tools/unasync.py`; do not edit."""
