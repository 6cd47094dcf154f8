"""The client contract for commits, contexts and background tasks."""
