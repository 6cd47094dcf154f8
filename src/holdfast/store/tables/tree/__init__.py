"""The stored files and folders of the tree: nodes, their contents, and the bytes of these."""
