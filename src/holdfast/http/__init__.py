"""The HTTP server: parse a request, call the operation, encode the result or the error. It has no other logic."""
