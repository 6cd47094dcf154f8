"""Finding things again. Pure functions: no storage, no network, no clock."""
