"""Language models and embedders: what is asked of them, and who answers."""
