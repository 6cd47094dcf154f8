"""The context that a model is shown. Pure functions: no storage, no network, no clock."""
