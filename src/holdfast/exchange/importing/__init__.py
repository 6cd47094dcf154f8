"""Import: sessions from files into Holdfast."""
