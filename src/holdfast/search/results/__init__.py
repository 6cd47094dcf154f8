"""What a search returns: excerpts, and texts for prompts, which are recognised later. Pure functions."""
