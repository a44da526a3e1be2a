"""A twin of OpenTable: generated reviews of the same shape, at any size, from a seed.

It lets the whole evaluation run where the real data are not at hand. What is measured on it says whether the
harness works, nothing about how good a system is.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from assay.broad.data.dataset import Array, Dataset, Inputs
from assay.broad.data.opentable import LONGEST, RATINGS, SHORTEST
from assay.core.errors import AssayError
from assay.core.progress import report

# Correlations of the impressions behind the ratings (Overall, Food, Ambiance, Service, Noise): the overall impression
# follows food, then service, then ambiance; noise hardly matters to it. Food, service and ambiance alone predict 85 %
# of it.
CORRELATIONS = np.array(
    [
        [1.00, 0.80, 0.65, 0.75, 0.20],
        [0.80, 1.00, 0.45, 0.50, 0.10],
        [0.65, 0.45, 1.00, 0.45, 0.30],
        [0.75, 0.50, 0.45, 1.00, 0.15],
        [0.20, 0.10, 0.30, 0.15, 1.00],
    ]
)
# Shares of the scores 1 to 5: guests are pleased more often than not, and noise is mostly in the middle.
SHARES = np.array([[0.05, 0.08, 0.17, 0.35, 0.35]] * 4 + [[0.08, 0.20, 0.40, 0.22, 0.10]])
BY_RESTAURANT = 0.2  # share of the variance that all reviews of a restaurant have in common
COMMON, TELLING, DISHES = 4_000, 60, 12  # number of common words; of words for each rating; of one restaurant's words
KINDS = (0.72, 0.06)  # shares of common words and of a restaurant's own; the others express a rating
TOPICS = (0.28, 0.22, 0.16, 0.20, 0.14)  # shares of the five ratings among the words that express one
BLOCK = 20_000  # reviews written at a time


def generated_reviews(count: int = 433_697, restaurants: int = 10_066, seed: int = 0) -> Dataset:
    """Generate reviews with five ratings, shaped like OpenTable; by default they pass `check_opentable`.

    Ratings are five correlated normal variables (`CORRELATIONS`), one fifth of their variance shared by the reviews
    of a restaurant, cut into scores 1 to 5 (`SHARES`). A review is a row of made-up words: common ones with Zipf
    frequencies, some of twelve that belong to its restaurant, and words that express its ratings. Each rating has 60
    such words, ordered from displeased to pleased; a review takes them from around the place of its score. Words are
    the same for all seeds. Reviews have 30 to 750 characters, 248 on average, in 44 words.

    Args:
        count: Number of reviews.
        restaurants: Number of restaurants; each has at least one review, a few have very many.
        seed: Seed of all random draws.

    Example:
        >>> twin = generated_reviews(count=300, restaurants=20, seed=1)
        >>> twin.labels, twin.targets.shape, len(set(twin.groups.tolist()))
        (('Overall', 'Food', 'Ambiance', 'Service', 'Noise'), (300, 5), 20)
    """
    if not 1 <= restaurants <= count:
        raise AssayError(f"restaurants={restaurants}, count={count}: each restaurant needs a review")
    rng = np.random.default_rng([seed, 0])
    popularity = rng.lognormal(sigma=1.0, size=restaurants)
    drawn = rng.choice(restaurants, count - restaurants, p=popularity / popularity.sum())
    groups = rng.permutation(np.concatenate([np.arange(restaurants), drawn]))
    root = np.linalg.cholesky(CORRELATIONS).T
    house = rng.normal(size=(restaurants, 5)) @ root
    guest = rng.normal(size=(count, 5)) @ root
    impression = np.sqrt(BY_RESTAURANT) * house[groups] + np.sqrt(1 - BY_RESTAURANT) * guest
    ratings = np.empty((count, 5))
    for j, shares in enumerate(SHARES):
        # Cut at the twin's own quantiles, so that the shares hold at every size.
        ratings[:, j] = 1 + np.searchsorted(np.quantile(impression[:, j], np.cumsum(shares[:-1])), impression[:, j])
    dishes = rng.integers(COMMON // 10, COMMON, (restaurants, DISHES))
    texts: list[str] = []
    for start in range(0, count, BLOCK):
        part = slice(start, start + BLOCK)
        texts += _written(ratings[part].astype(np.int64), dishes[groups[part]], np.random.default_rng([seed, 1, start]))
        report("generated reviews", len(texts), count)
    ids = tuple(f"review {i}" for i in range(count))
    return Dataset(f"generated reviews (seed {seed})", "text", Inputs(texts, ids), ratings, RATINGS, groups)


def _written(ratings: Array, dishes: Array, rng: np.random.Generator) -> list[str]:
    """Write reviews for given ratings: words are drawn until a review has the length meant for it."""
    words = vocabulary()
    lengths = np.array([len(word) for word in words])
    # A review ends with the word that reaches the length meant, or where the form is full.
    meant = np.minimum(SHORTEST + rng.gamma(1.5, 146.5, len(ratings)), LONGEST).astype(np.int64)
    enough = meant // 4 + 12  # words to draw; at least two letters and a space each, so never less than 30 characters
    owner = np.repeat(np.arange(len(ratings)), enough)
    kind = rng.random(len(owner))
    place = rng.random(len(owner))
    zipf = np.cumsum(1 / (np.arange(COMMON) + 3.0))
    drawn = np.searchsorted(zipf / zipf[-1], place)
    own = (kind >= KINDS[0]) & (kind < sum(KINDS))
    drawn[own] = dishes[owner[own], (place[own] * DISHES).astype(np.int64)]
    of_rating = np.flatnonzero(kind >= sum(KINDS))
    topic = np.searchsorted(np.cumsum(TOPICS[:-1]), place[of_rating], side="right")
    centre = (ratings[owner[of_rating], topic] - 0.5) / 5 * TELLING
    around = np.floor(centre + 0.2 * TELLING * rng.normal(size=len(of_rating)))
    drawn[of_rating] = COMMON + topic * TELLING + np.clip(around, 0, TELLING - 1).astype(np.int64)
    ends = np.cumsum(lengths[drawn] + 1)
    first = np.concatenate([[0], np.cumsum(enough)[:-1]])
    before = np.concatenate([[0], ends])[first]
    last = np.minimum(np.searchsorted(ends, before + meant + 1), first + enough - 1)
    spelt = [words[i] for i in drawn.tolist()]
    return [" ".join(spelt[a : b + 1])[:LONGEST] for a, b in zip(first.tolist(), last.tolist(), strict=True)]


@cache
def vocabulary() -> tuple[str, ...]:
    """The words of generated reviews: 4,000 common ones, the frequent ones short, then 60 for each rating."""
    rng = np.random.default_rng(2010)
    vowels = "aeiou"
    consonants = "bcdfghjklmnprstvwz"
    known: dict[str, None] = {}
    for place in range(COMMON + len(RATINGS) * TELLING):
        usual = 2.25 + 0.55 * np.log(1 + place) if place < COMMON else 6.0
        word = ""
        while not word or word in known:
            letters = int(np.clip(rng.normal(usual, 1.0), 2, 12))
            start = int(rng.integers(2))
            sounds = [(consonants, vowels)[(start + i) % 2] for i in range(letters)]
            word = "".join(sound[rng.integers(len(sound))] for sound in sounds)
        known[word] = None
    return tuple(known)
