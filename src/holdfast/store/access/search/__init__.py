"""What a caller may find: readable documents and files, and the hits among them."""
