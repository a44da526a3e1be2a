"""Straightness: how curved the path of a video is in every layer of a network."""
