"""The attributes of files and folders: tags, and relations to others."""
