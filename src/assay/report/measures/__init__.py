"""How each measure is shown."""
