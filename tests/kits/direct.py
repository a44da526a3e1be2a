"""The definitions once more, pair by pair and with nothing of the library: slow, and easy to check by eye."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, product
from math import exp, log2


def entropy(counts):
    total = sum(counts)
    return sum(c / total * log2(total / c) for c in counts if c)


def conditions(columns, sizes):
    return [s for size in sizes for s in combinations(range(len(columns)), size)]


def information_by_condition(measure, gap, columns, sizes=(2,), self_pairs=True, cell_weight="uniform", networks=None):
    """Scores of all sets; None where the entropy is 0 in all cells. Entries of one number in networks are copies."""
    networks = range(len(gap)) if networks is None else networks
    scores = []
    for chosen in conditions(columns, sizes):
        cells = defaultdict(Counter)
        for i, j in product(range(len(gap)), repeat=2):
            if networks[i] != networks[j] or self_pairs:
                cell = tuple((columns[h][i], columns[h][j]) for h in chosen)
                cells[cell][gap[i] > gap[j], measure[i] > measure[j]] += 1
        information = uncertainty = 0.0
        for counts in cells.values():
            of_gap = entropy([sum(c for (g, _), c in counts.items() if g == v) for v in (True, False)])
            of_measure = entropy([sum(c for (_, m), c in counts.items() if m == v) for v in (True, False)])
            weight = 1 if cell_weight == "uniform" else sum(counts.values())
            information += weight * (of_gap + of_measure - entropy(counts.values()))
            uncertainty += weight * of_gap
        scores.append(information / uncertainty if uncertainty > 0 else None)
    return scores


def complete(columns, sizes=(2,)):
    for chosen in conditions(columns, sizes):
        filled = {tuple(columns[h][i] for h in chosen) for i in range(len(columns[0]))}
        if any(c not in filled for c in product(*(set(columns[h]) for h in chosen))):
            return False
    return True


def sign(x):
    return (x > 0) - (x < 0)


def differing(columns, i, j):
    return [k for k, column in enumerate(columns) if column[i] != column[j]]


def granulated(measure, gap, columns):
    """ψ of each hyper-parameter; None where no pair differs in it alone."""
    found = []
    for k in range(len(columns)):
        groups = defaultdict(list)
        for i, j in combinations(range(len(gap)), 2):
            if differing(columns, i, j) == [k]:
                others = tuple(column[i] for h, column in enumerate(columns) if h != k)
                groups[others].append(sign(measure[i] - measure[j]) * sign(gap[i] - gap[j]))
        taus = [sum(values) / len(values) for values in groups.values()]
        found.append(sum(taus) / len(taus) if taus else None)
    return found


def sign_errors(measure, gap, columns, environment="levels", test_size=None, min_pairs=1.0):
    """Errors of all environments with enough pairs."""
    places = defaultdict(list)
    for i, j in combinations(range(len(gap)), 2):
        if len(changed := differing(columns, i, j)) == 1:
            (k,) = changed
            ends = [tuple(c[n] for c in columns) if environment == "settings" else columns[k][n] for n in (i, j)]
            weight = 1.0
            if test_size is not None:
                sure = max(0.0, 1 - 2 * exp(-2 * test_size * (abs(gap[i] - gap[j]) / 2) ** 2))
                weight = max(0.0, sure**2 - 0.5)
            error = (1 - sign(measure[i] - measure[j]) * sign(gap[i] - gap[j])) / 2
            places[k, frozenset(ends)].append((weight, error))
    errors = []
    for pairs in places.values():
        total, squares = sum(w for w, _ in pairs), sum(w * w for w, _ in pairs)
        if squares and total**2 / squares >= min_pairs:
            errors.append(sum(w * e for w, e in pairs) / total)
    return errors
