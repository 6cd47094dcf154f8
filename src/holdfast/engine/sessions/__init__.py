"""Sessions, their messages, their events and their large tool outputs."""
