"""Commands for the `viking://` tree."""
