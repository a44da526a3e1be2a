"""Unsupervised deep learners of video and text."""
