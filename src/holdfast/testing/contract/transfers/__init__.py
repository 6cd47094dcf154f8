"""The contract of uploads, downloads and batches of writes."""
