"""Commands for what is stored in the `viking://` tree."""
