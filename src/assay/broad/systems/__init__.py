"""Systems under evaluation: teams, and the modules that their systems are made of."""
