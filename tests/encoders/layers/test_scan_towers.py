"""Do towers give unit vectors, a GRU's states, and the initial values of linear maps and word vectors?"""

from __future__ import annotations

import math

import torch
from torch import nn

from lossscope.encoders.layers.initialisation import build_embedding, init_xavier
from lossscope.encoders.layers.scan_towers import gru_states, unit
from tests.each import each


def test_unit_adds_the_originals_epsilon_and_leaves_half_precision() -> None:
    assert torch.allclose(unit(torch.tensor([[3.0, 4.0]])), torch.tensor([[0.6, 0.8]]))
    assert torch.equal(unit(torch.zeros(1, 3)), torch.zeros(1, 3))
    assert torch.allclose(unit(torch.tensor([[1e-8, 0.0]])), torch.tensor([[0.5, 0.0]]))
    assert unit(torch.ones(1, 3, dtype=torch.bfloat16)).dtype == torch.float32
    assert unit(torch.ones(1, 3, dtype=torch.float64)).dtype == torch.float64


@each("both", [True, False])
def test_states_are_those_of_each_caption_alone(both: bool) -> None:
    torch.manual_seed(0)
    rnn, words, lengths = nn.GRU(3, 4, batch_first=True, bidirectional=both), torch.randn(3, 6, 3), [4, 1, 5]
    states = gru_states(rnn, words, torch.tensor(lengths))
    assert states.shape == (3, 6, 4)
    for row, length in enumerate(lengths):
        alone = rnn(words[row : row + 1, :length])[0][0]
        expected = (alone[:, :4] + alone[:, 4:]) / 2 if both else alone
        assert torch.allclose(states[row, :length], expected, atol=1e-6)
        assert not states[row, length:].any()


def test_maps_and_word_vectors_start_within_their_bounds() -> None:
    torch.manual_seed(0)
    layer, words = init_xavier(nn.Linear(30, 50)), build_embedding(40, 20, 0.1)
    for weight, bound in ((layer.weight, math.sqrt(6 / 80)), (words.weight, 0.1)):
        assert 0.9 * bound < float(weight.detach().abs().max()) <= bound
    assert not layer.bias.any()
