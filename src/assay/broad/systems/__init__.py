"""Systems under evaluation: teams and the modules they are made of."""
