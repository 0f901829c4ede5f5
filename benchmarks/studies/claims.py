"""Claims about drawn instances, each with a control whose verdict must be the opposite.

`structsvm-papk verify` searches the claims of the paper; these are about other metrics and losses.
"""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

TOL = 1e-9


@dataclass(frozen=True)
class Effort:
    """How many laws of labels are tried, and how many items a list has that is to be long."""

    n_laws: int
    n_items: int


EFFORTS = {
    "quick": Effort(n_laws=50, n_items=5_000),
    "normal": Effort(n_laws=140, n_items=20_000),
    "thorough": Effort(n_laws=2_000, n_items=100_000),
}


@dataclass(frozen=True)
class Drawn:
    """Instances that ``draw(rng, effort)`` yields, and by how much one violates the claim."""

    violation: Callable[[Any], float]
    draw: Callable[[np.random.Generator, Effort], Iterable[Any]]

    def search(self, seed, effort):
        """How many instances were drawn, the largest violation, and the instance that has it."""
        n = 0
        largest = -np.inf
        worst = None
        for instance in self.draw(np.random.default_rng(seed), effort):
            violation = float(self.violation(instance))
            n += 1
            if worst is None or violation > largest:
                largest = violation
                worst = instance
        return n, largest, worst


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is said, by whom, and how it and its control are tested."""

    id: str
    claim: str
    formula: str
    source: str
    statement: Drawn
    control: Drawn
    control_words: str
    hypothesis: str = "none"

    def check(self, seed=0, effort="normal"):
        """The verdict and that of the control, as a dict; "holds" on all instances tried."""
        streams = np.random.SeedSequence([seed, zlib.crc32(self.id.encode())]).generate_state(2)
        level = EFFORTS[effort]
        n, worst, instance = self.statement.search(streams[0], level)
        _, control, _ = self.control.search(streams[1], level)
        fails = worst > TOL
        return {
            "id": self.id,
            "claim": self.claim,
            "formula": self.formula,
            "source": self.source,
            "hypothesis": self.hypothesis,
            "verdict": _verdict(worst),
            "instances": n,
            "worst": worst,
            "counterexample": instance.described() if fails else None,
            "control": self.control_words,
            "control_verdict": _verdict(control),
            "control_works": fails != (control > TOL),
        }


def _verdict(worst):
    return "counterexample" if worst > TOL else "holds"
