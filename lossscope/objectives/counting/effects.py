"""∂ count / ∂ (how often a candidate stands in its row): the effect of single candidates on what is counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(frozen=True)
class CountEffects:
    """Effect of each candidate on the counts of each query, (q, c) each, 0 where an entry is no negative.

    To first order, a row in which candidate c stood twice would have the counts + the effect of c. Where a count is not
    smooth, as whether any weight is above eps, the effect is that of leaving the candidate out.
    """

    above: Tensor  # on the number of weights above eps
    any_above: Tensor  # on whether there is one
    mass_above: Tensor
    mass_below: Tensor
    positive: Tensor  # on the weight on the positive
    n_eff: Tensor  # NaN where the query would have no weight without the candidate

    def scale_weights(self, factor: float) -> CountEffects:
        """Return the effects on weights that are `factor` times as large."""
        if factor == 1:
            return self
        above, below, positive = (x * factor for x in (self.mass_above, self.mass_below, self.positive))
        return replace(self, mass_above=above, mass_below=below, positive=positive)
