"""Search: what is known of a document and of a query, and how documents are ranked. Pure functions."""
