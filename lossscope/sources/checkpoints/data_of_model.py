"""Which data, and which split of them, does a checkpoint's model see?"""

from __future__ import annotations

from lossscope.core.request import Request
from lossscope.datasets.base import Dataset
from lossscope.registry import build, spec_of

from .checkpoint import Checkpoint
from .reading import complete_data


def data_of_model(checkpoint: Checkpoint, request: Request) -> tuple[Dataset, str, tuple[str, ...]]:
    """Return the data set, the name of the split, and notices on how its pictures are read.

    A trained model keeps the splits that its training cut from a single file. Other data that are a single file are
    read whole, unless the request names a split. Raises SpecError or InputError for data that cannot be built.

    Args:
        checkpoint: with the model; of data, unless the request has some.
        request: which data and split.
    """
    spec, notices = complete_data(request.data or checkpoint.data, checkpoint.reading)
    dataset: Dataset = build("datasets", spec)
    is_trained = bool(checkpoint.training) and not checkpoint.is_released
    is_trained_on = is_trained and (request.data is None or spec_of(dataset) == checkpoint.data)
    return dataset, request.named_split if is_trained_on else request.split_of(dataset), notices
