"""Networks read from files of other libraries."""
