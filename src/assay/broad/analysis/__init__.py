"""The plan's analysis of results: scores, contrasts, claims."""
