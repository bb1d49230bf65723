"""SGRAF's released files: the options and sizes that follow from tensors and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..types import OpenedModel, ReleasedFile
from .options import require_agreement, require_tensor
from .scan_family import is_bidirectional, matrix_shape, open_model, prefixed_weights, read_towers, region_width

_REGION_SLOTS = "similarity.v_global_w.embedding_local.1.running_mean"  # (regions,)
_GRU = "text.cap_rnn"


def open_sgraf(encoder: Callable[..., Any], released: ReleasedFile) -> OpenedModel | None:
    """Return the model of a file of three towers whose text tower has a `cap_rnn`; None for other files.

    Raises InputError for a file that does not fit, or whose options contradict its tensors.
    """
    if len(released.towers) != 3 or not any(name.startswith("cap_rnn.") for name in released.towers[1]):
        return None
    weights = prefixed_weights(released)
    options = {"max_violation": True, **released.options}  # true is the default of the authors' code
    steps = {name.split(".")[2] for name in weights if name.startswith("similarity.SGR_module.")}
    sim_dim = matrix_shape(weights, "similarity.sim_tranloc_w.weight")[0]
    require_agreement(options, {"module_name": "SGR" if steps else "SAF", "sim_dim": sim_dim})
    if steps:  # SAF's files hold the number too
        require_agreement(options, {"sgr_step": len(steps)})
    spec = encoder(
        module="sgr" if steps else "saf",
        **({"steps": len(steps)} if steps else {}),
        bi_gru=is_bidirectional(weights, _GRU),
        sim_dim=sim_dim,
        **read_towers(weights, options, _GRU),
    )
    shape = (len(require_tensor(weights, _REGION_SLOTS, 1)), region_width(weights))
    return open_model(spec, weights, shape, options)
