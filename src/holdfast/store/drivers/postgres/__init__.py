"""The PostgreSQL driver: connections, transactions, batches and limits."""
