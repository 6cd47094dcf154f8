"""Storage. All queries are functions of a transaction (`Tx`); two drivers provide transactions."""
