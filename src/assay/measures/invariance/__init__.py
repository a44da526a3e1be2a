"""Invariance: which transformations of a stimulus the units of a layer ignore."""
