"""The data types, as frozen structs. They hold data and do nothing."""
