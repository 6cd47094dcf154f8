"""The parts of the gate that every operation passes: access control, handlers, the clock and the ids."""
