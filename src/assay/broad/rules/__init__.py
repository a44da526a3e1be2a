"""The plan's requirements of a system, tried on a bench."""
