"""The Broad Evaluation: a fair comparison of whole learning systems under six conditions."""
