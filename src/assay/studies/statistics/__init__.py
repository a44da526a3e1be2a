"""Statistics of a corpus: how well a measure predicts the generalization gap."""
