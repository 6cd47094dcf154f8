"""The SQLite and PostgreSQL drivers: connections, transactions, group commit."""
