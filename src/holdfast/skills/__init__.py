"""Skills: reading, checking and making the file SKILL.md. Pure."""
