"""How curved the path of a video is in every layer."""
