"""Responses that are sent page by page, and streams of events."""
