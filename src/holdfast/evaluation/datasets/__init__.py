"""Readers of data sets: conversations, questions, and the evidence of each question."""
