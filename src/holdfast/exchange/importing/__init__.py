"""Import of sessions from files."""
