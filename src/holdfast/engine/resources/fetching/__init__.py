"""Fetching of web pages and Git repositories, for operators who allow it. No private address can be reached."""
