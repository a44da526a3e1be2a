"""How networks learn: greedily layer by layer, one or many at once."""

from assay.training.layerwise import Greedy, greedy, population

__all__ = ["Greedy", "greedy", "population"]
