"""The pace of an examination: how long questions take, as it is learned while they are asked."""

from __future__ import annotations

import time
from collections.abc import Callable

_RESERVE = 0.1  # share of the time left that no question is given: what it takes is known only roughly
_TRUST = 0.02  # share of all the time by which the first estimate outweighs what the first questions took
_KEPT = 0.5  # weight of what was learned before a question, beside what it took: a machine may become busy or idle


class Pace:
    """How much time is left, and how much longer questions take than was estimated before the first.

    The first estimate is one pass of a few inputs, on a machine that may be busier later. What every question took,
    over what it was estimated to take, corrects the estimates of those that are still to be asked.

    Args:
        seconds: The time there is.
        clock: Tells the time in seconds.

    Example:
        >>> now = [0.0]
        >>> pace = Pace(100.0, clock=lambda: now[0])
        >>> now[0] = 20.0                # a question took 20 s
        >>> pace.learn(estimated=8.0, taken=20.0)
        >>> pace.left, round(pace.factor, 1)
        (80.0, 2.3)
        >>> pace.share(questions=2)
        36.0
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self.begin = clock()
        self._estimated = self._taken = _TRUST * seconds

    @property
    def spent(self) -> float:
        """Seconds since the examination began."""
        return self.clock() - self.begin

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 where more were needed than there are."""
        return self.seconds - self.spent

    @property
    def factor(self) -> float:
        """How many times as long questions take as they were estimated to."""
        return self._taken / self._estimated

    def learn(self, estimated: float, taken: float) -> None:
        """Take into account a question that was estimated at so many seconds, above 0, and took so many."""
        if estimated > 0:
            self._estimated = _KEPT * self._estimated + estimated
            self._taken = _KEPT * self._taken + taken

    def share(self, questions: int) -> float:
        """Seconds for the next of so many questions, all having equal shares of the time left but for a reserve."""
        return max(0.0, (1 - _RESERVE) * self.left / questions)
