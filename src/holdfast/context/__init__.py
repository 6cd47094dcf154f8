"""What the model sees. Pure functions: no storage, no network, no clock."""
