"""Queries as functions of a transaction, a file per table or noun."""
