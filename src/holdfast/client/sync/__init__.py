"""The client, written once. `client/generated` is its asynchronous version."""
