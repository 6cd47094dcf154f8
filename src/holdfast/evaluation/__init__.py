"""Evaluation of search: data sets with questions and their evidence, asked through the client, and figures of them."""
