"""Data of a broad evaluation: corpora, instances, partitions and stored features."""
