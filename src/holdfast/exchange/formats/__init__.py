"""The file formats that an import reads."""
