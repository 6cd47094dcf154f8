"""The contracts of skills."""
