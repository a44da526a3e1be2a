"""Extractors and preprocessors."""
