"""Models of early vision."""
