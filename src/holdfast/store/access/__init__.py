"""Who may see what: users and their keys, grants and share links. Queries as functions of a transaction."""
