"""Searches the contents of stored files and folders: resources and skills."""
