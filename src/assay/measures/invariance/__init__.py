"""Which transformations the units of a layer ignore."""
