"""How time expressions are read: periods of days, and the rules of each language. Pure functions."""
