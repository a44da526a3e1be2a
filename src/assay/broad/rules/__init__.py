"""The plan's requirements of a system, checked on a few instances."""
