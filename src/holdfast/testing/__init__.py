"""For people who test against Holdfast or write a backend for it: contracts, faults and a real PostgreSQL."""
