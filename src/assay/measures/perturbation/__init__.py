"""Perturbation response: how accuracy falls as inputs, or what a layer made of them, are perturbed."""
