"""Networks that learn from labels."""
