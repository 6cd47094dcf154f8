"""Logs, metrics and readiness of the server."""
