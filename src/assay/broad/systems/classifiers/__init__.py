"""Classifiers and predictors of ratings."""
