"""The two databases: connections, transactions, group commit."""
