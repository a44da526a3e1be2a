"""The plan's analysis: scores, contrasts, claims."""
