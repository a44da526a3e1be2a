"""What every room stands on: errors, folders, fingerprints, determinism, progress; knows nothing of the rest."""
