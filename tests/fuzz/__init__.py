"""Seeded fuzzers: files, plans and networks that no person would write, given to assay by the thousand."""
