"""Networks that learn without labels."""
