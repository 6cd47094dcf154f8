"""The parts of the gate that every operation passes: access control, rules, the clock and the ids."""
