"""Processing of stored files: their text, parts and summaries, and the documents that a search finds."""
