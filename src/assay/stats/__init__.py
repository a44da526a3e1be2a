"""Pure statistics that every room above uses: the bootstrap, paired tests, many tests, equivalence, correlations."""
