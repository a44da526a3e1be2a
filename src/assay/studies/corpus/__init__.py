"""Corpora: many networks that differ in hyper-parameters."""
