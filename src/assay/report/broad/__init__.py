"""The report of a broad evaluation."""
