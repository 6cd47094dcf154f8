"""The `viking://` tree: its nodes, and the operations that list and read them."""
