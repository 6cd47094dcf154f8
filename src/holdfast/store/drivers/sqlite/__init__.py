"""The SQLite driver: connections, transactions, the file and its clock."""
