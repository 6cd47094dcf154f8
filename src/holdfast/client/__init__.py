"""The Python client. The same interface works with an embedded engine and with a server over HTTP."""
