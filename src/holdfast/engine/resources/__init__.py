"""Resources: files, folders, archives and pages that are added to the tree, and watches that add them again."""
