"""The client contract for sessions and their messages."""
