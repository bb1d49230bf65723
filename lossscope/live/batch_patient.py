"""Turn the newest batch of a running loop and its log into a patient of the doctor."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.core.types import DIRECTIONS
from lossscope.doctor.examination.open_source import of_split
from lossscope.doctor.examination.options import Options
from lossscope.doctor.logs.base import TrainingLog
from lossscope.doctor.parts.batches import Batches, query_statistics
from lossscope.doctor.parts.matrix import Matrix
from lossscope.doctor.parts.patient import Patient, TrainedWith
from lossscope.doctor.parts.vectors import Vectors
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import dense_rows
from lossscope.errors import InputError
from lossscope.objectives.base import Gradient, Objective
from lossscope.registry import spec_of

from .observed import Observed

_NEAR = 1e-3  # of similarities that differ by rounding only, half precision included
_LOOKED_AT = 16  # compared rows of S
_OBJECTIVES = "lossscope.objectives"  # the package of the registry's entries
_PRODUCTS = "its similarities are products of its rows"


def patient_of(observed: Observed, objective: Objective | None, log: TrainingLog) -> Patient:
    """Return a batch and the log as a patient of the doctor.

    Args:
        observed: the batch.
        objective: of the training; None: it is not known as a function of S.
        log: of the steps so far.
    """
    S = _on_host(observed.first.detach().S)
    vectors = _embeddings(observed)
    relations = observed.relations()
    first, second = vectors if vectors is not None else (None, None)
    split = SplitEmbeddings(
        "the newest batch", first, second, None if vectors is not None else S, None,
        [str(row) for row in range(relations.first)], [str(row) for row in range(relations.second)],
        fingerprint="", relations=relations,
    )  # fmt: skip
    patient = of_split(split, Options(batch_size=len(S)))
    patient.name, patient.stated_batch_size = split.name, len(S)
    patient.notices, patient.given[TrainingLog] = [], log
    _add_similarities(patient, S, vectors, objective)
    if objective is None or isinstance(objective, Gradient):
        patient.missing[Batches] = "the loss is no objective of similarities alone"
    else:
        patient.given[TrainedWith] = TrainedWith(objective)
        patient.objective_spec = spec_of(objective) if is_known(objective) else None
        patient.given[Batches] = lambda: _batches(observed, objective)
    return patient


def is_known(objective: Objective) -> bool:
    """Return whether an objective comes from the registry, so that it takes cosines, and not from the user."""
    package, _, name = type(objective).__module__.rpartition(".")
    return package == _OBJECTIVES and name != "base"


def _embeddings(observed: Observed) -> tuple[Tensor, Tensor] | None:
    """Return the embeddings of both sides as given; the same tensor twice for one set."""
    vectors = observed.vectors
    if vectors is None or vectors[0].ndim != 2 or vectors[1].ndim != 2:
        return None
    first, second = (_on_host(x.detach()) for x in vectors)
    if (len(first), len(second)) != observed.shape or first.shape[1] != second.shape[1]:
        return None
    dtype = torch.promote_types(torch.promote_types(first.dtype, second.dtype), torch.float32)
    first, second = first.to(dtype), second.to(dtype)
    return (first, first) if observed.sides.is_one_set else (first, second)


def _add_similarities(
    patient: Patient, S: Tensor, vectors: tuple[Tensor, Tensor] | None, objective: Objective | None
) -> None:
    """Add S as a Matrix where it is neither the cosines nor the products of the rows.

    Losses of the user may take similarities of any scale, so the check reads S only under objectives of the registry.
    """
    is_cosine_objective = objective is not None and is_known(objective)
    if vectors is None:
        if not is_cosine_objective:
            patient.missing[Matrix] = "its loss may take similarities of any scale"
        return
    if not is_cosine_objective or _is_near(S, *vectors):
        patient.missing[Matrix] = _PRODUCTS
        return
    unit = [torch.nn.functional.normalize(x, dim=1) for x in vectors]
    if not _is_near(S, *unit):
        patient.given[Matrix] = Matrix(S)


def uses_lengths(patient: Patient, rows: DirectionRows) -> bool:
    """Return whether S is the product of its rows, so that their lengths matter."""
    if not patient.has(Vectors):
        return False
    vectors = patient.part(Vectors)
    return _is_near(rows.S.detach()[:_LOOKED_AT].cpu(), vectors.first, vectors.second)


def _is_near(S: Tensor, first: Tensor, second: Tensor) -> bool:
    """Return whether S is a product of rows, judged by its first rows."""
    product, similarity = first[:_LOOKED_AT].float() @ second.float().T, S[:_LOOKED_AT].float()
    return bool(((product - similarity).abs() <= _NEAR + 0.01 * similarity.abs()).all())


def _batches(observed: Observed, objective: Objective) -> Batches:
    """Return the statistics of the queries of this batch. Raises Missing where they cannot be computed."""
    directions = observed.of_directions()
    try:
        rows = zip(map(_on_cpu, directions), DIRECTIONS, strict=False)
        parts = [query_statistics(objective, dense_rows(on_cpu, direction)) for on_cpu, direction in rows]
    except InputError as error:
        raise Missing(f"the objective cannot be computed on the batch: {error}") from None
    return Batches.joined(objective, len(directions[0].S), parts, "no query of the batch has a positive and a negative")


def _on_cpu(rows: DirectionRows) -> DirectionRows:
    rows = rows.detach().with_embeddings_in_mask()
    return DirectionRows(_on_host(rows.S), rows.mask.to(torch.device("cpu")))


def _on_host(x: Tensor) -> Tensor:
    """Return a tensor that may enter a graph, even if it was computed in inference mode."""
    return x.clone() if x.device.type == "cpu" and x.is_inference() else x.cpu()
