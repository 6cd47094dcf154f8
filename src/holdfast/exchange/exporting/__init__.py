"""Export: sessions from Holdfast into a folder."""
