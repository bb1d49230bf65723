"""What to write where a loss cannot be called as it is: a wrapper of one line, or what to change in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

CALL_HINTS: Mapping[str, str] = {
    "labels": (
        ". It is called with pairs, as loss(images, labels, ref_emb=captions, ref_labels=labels); one "
        "without ref_emb is called as loss(embeddings, labels) on labelled items and on views"
    ),
    "sentences": (
        ". It is called with the sentence embeddings of pairs, without a model or labels; one that needs labels "
        "(CoSENTLoss), a third column (TripletLoss), a second model (GISTEmbedLoss) or chunks of its own (Cached...) "
        "cannot be counted. Take the plain one with the same scale, such as MultipleNegativesRankingLoss, which "
        "ntxent:tau=1/scale is too"
    ),
}
DTYPE = re.compile(r"dtype|scalar type|\b[Dd]ouble\b")  # in what torch says of operands of different types
_ERROR_HINTS: Sequence[tuple[re.Pattern[str], str]] = (
    (
        DTYPE,
        ". It is called in float64: create its constants in the type of its input, torch.eye(len(S), dtype=S.dtype)",
    ),
    (
        re.compile("same device"),
        ". Create its constants on the device of its input: torch.arange(len(S), device=S.device)",
    ),
)
_WIDTH_HINT = (
    ". It is called with embeddings of other widths than those of your model: a layer or a memory of a fixed width "
    "must be left out of it. Write the loss of the similarities, def loss(S), or of embeddings alone"
)
VECTORS = ("z", "zs", "h", "x", "emb", "embs", "embedding", "embeddings", "feature", "features", "feats", "vectors")
MATRICES = ("s", "sim", "sims", "similarity", "similarities", "score", "scores", "cosine", "cosines", "sim_matrix")
LOGITS = ("logit", "logits", "logits_per_image", "logits_per_text")
LABELS = ("label", "labels", "target", "targets", "y_true", "gt", "ground_truth", "class_labels")
POSITIVES = ("mask", "match", "positives", "positive_mask", "pos_mask")  # of a second parameter that marks positives
MASKS = ("mask", "masks", "match", "valid", "positives", "positive_mask", "pos_mask")


def advice_on(error: Exception, form: str) -> str:
    """Return what to do about an error that the user's code raised; empty where that is not known."""
    if form in CALL_HINTS:
        return CALL_HINTS[form]
    for pattern, hint in _ERROR_HINTS:
        if pattern.search(str(error)):
            return hint
    is_width = re.search(r"shapes? cannot be multiplied|[Ss]izes of tensors must match|must match the size", str(error))
    return _WIDTH_HINT if is_width and form in ("embeddings", "features") else ""


def wrapper_for(names: Sequence[str], call: str) -> str | None:
    """Return what to say of required parameters that are neither S nor embeddings; None where nothing is known.

    Args:
        names: of the required parameters, as they are written.
        call: how the loss is called, without its arguments: its name.
    """
    first, *rest = [plain_name(name) for name in names] or [""]
    if len(rest) == 1 and rest[0] in LABELS and first not in VECTORS:
        scaled, why = ("S", "") if first in MATRICES else ("S / 0.05", ", 0.05 being your temperature")
        return (
            f"{names[1]} must be those of pairs: item i of one side matches item i of the other. Give a loss of S: "
            f"`def loss(S): return {call}({scaled}, torch.arange(len(S)))`{why}; for targets of 0 and 1 "
            "`torch.eye(len(S))` in place of `torch.arange(len(S))`"
        )
    if len(rest) == 1 and rest[0] in MASKS:
        return (
            f"it is called without {names[1]}, as pair i is on the diagonal of S. Give a loss of S: "
            f"`def loss(S): return {call}(S, torch.eye(len(S), dtype=torch.bool))` where it marks the positives, and "
            "`~torch.eye(...)` where it marks the negatives"
        )
    if len(rest) == 1 and first in LOGITS and rest[0] in LOGITS:
        return f"give a loss of S: `def loss(S): return {call}(S / 0.05, S.T / 0.05)`, 0.05 being your temperature"
    if not rest and first in LOGITS:
        return (
            f"{names[0]} may be S or S / temperature. Say which: {call}.lossscope_takes = 'S' where it is S; else "
            f"`def loss(S): return {call}(S / 0.05)`, 0.05 being your temperature"
        )
    return None


def plain_name(name: str) -> str:
    """Return the name of a parameter in lower case, without underscores at its ends and numbers behind it."""
    return name.lower().strip("_").rstrip("0123456789")
