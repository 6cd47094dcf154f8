"""Holdfast over HTTP: parse, build the operation, hand it to the gate, map the error. Nothing else can happen here."""
