"""Representational similarity: dissimilarities of responses, how alike they are, and how sure one can be of it."""
