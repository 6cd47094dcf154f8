"""What every operation passes: its rule, access control, the clock and the ids."""
