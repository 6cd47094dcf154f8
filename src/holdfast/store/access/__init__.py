"""Who may see what: users and their keys, grants, share links, and the lists that they open.

Queries as functions of a transaction.
"""
