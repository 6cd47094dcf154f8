"""Where stored files are, and what the texts of their parts are."""
