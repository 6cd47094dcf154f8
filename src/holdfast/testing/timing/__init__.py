"""Tests of CPU time: how it grows with the size of hostile input."""
