"""What applications use: the same client over an embedded engine and, later, over HTTP."""
