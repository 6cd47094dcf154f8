"""The operations on the `viking://` tree."""
