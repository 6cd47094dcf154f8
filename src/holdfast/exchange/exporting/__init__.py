"""Export of sessions to a folder."""
