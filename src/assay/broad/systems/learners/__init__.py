"""Unsupervised learners."""
