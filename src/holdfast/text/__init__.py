"""Text processing: tokens, words, sentences, scripts and literals. Pure functions."""
