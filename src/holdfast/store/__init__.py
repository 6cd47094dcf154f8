"""Where everything is kept. The narrow waist is a transaction: queries are functions of a `Tx`."""
