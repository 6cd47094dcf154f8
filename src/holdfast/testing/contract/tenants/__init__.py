"""The client contract for accounts, users, roles and upkeep."""
