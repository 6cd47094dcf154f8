"""The methods of the client for the `viking://` tree."""
