"""Data of a broad evaluation: corpora, tasks' inputs, partitions, kept features."""
