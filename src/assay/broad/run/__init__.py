"""Runs of a broad evaluation: each task under each condition."""
