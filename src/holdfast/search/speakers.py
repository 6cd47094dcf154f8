"""Who speaks in a message."""

MAX_NAME_CHARS = 40
MAX_NAME_WORDS = 3


def speaker_of(peer_id: str | None, text: str) -> str:
    """Return who speaks, in lower case: the peer, or the name that the text begins with. Empty if nobody is named.

    >>> speaker_of("Ann", "Hello"), speaker_of(None, "Maria Lopez: Hello"), speaker_of(None, "at 10:30")
    ('ann', 'maria lopez', '')
    """
    if peer_id:
        return peer_id.lower()
    name, colon, rest = text[: MAX_NAME_CHARS + 2].partition(":")
    if not colon or not rest[:1].isspace() or len(name) > MAX_NAME_CHARS:
        return ""
    words = name.split()
    is_name = 1 <= len(words) <= MAX_NAME_WORDS and all(word[0].isupper() for word in words)
    return " ".join(words).lower() if is_name else ""
