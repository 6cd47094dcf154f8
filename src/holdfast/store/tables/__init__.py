"""Queries as functions of a transaction, one file per table or noun."""
