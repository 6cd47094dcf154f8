"""Results of searches by patterns, and the attributes of files and folders."""
