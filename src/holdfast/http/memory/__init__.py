"""The memory that large requests and responses share."""
