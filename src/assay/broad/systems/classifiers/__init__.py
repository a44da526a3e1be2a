"""Classifiers of video and predictors of ratings."""
