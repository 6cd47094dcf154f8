"""The synchronous client. `tools/unasync.py` generates the asynchronous one, `client/generated`, from it."""
