"""What a search asks for: addresses, times, and a query that the turns before it complete. Pure functions."""
