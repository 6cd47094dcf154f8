"""The client contract for accounts, users, roles, settings and statistics."""
