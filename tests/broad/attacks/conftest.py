"""Hostile code is never imported here, not even to be looked through for examples."""

collect_ignore = ["hostile.py", "patches_at_import.py"]
