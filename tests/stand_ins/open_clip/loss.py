"""The losses of open_clip, written anew."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, logsigmoid

from lossscope.core.distributed import process_group


class ClipLoss(nn.Module):
    def __init__(self, local_loss=False, gather_with_grad=False, cache_labels=False, rank=0, world_size=1):
        super().__init__()
        self.local_loss, self.with_grad, self.rank, self.world_size = local_loss, gather_with_grad, rank, world_size

    def gathered(self, x):
        if self.world_size == 1:
            return x
        if self.with_grad:
            return process_group().gather_rows(x)
        parts = list(process_group().stack(x))
        if not self.local_loss:
            parts[self.rank] = x
        return torch.cat(parts)

    def get_logits(self, image_features, text_features, logit_scale, logit_bias=None):
        images, texts = self.gathered(image_features), self.gathered(text_features)
        rows, columns = (image_features, text_features) if self.local_loss else (images, texts)
        return logit_scale * rows @ texts.T, logit_scale * columns @ images.T

    def forward(self, image_features, text_features, logit_scale, logit_bias=None):
        S, T = self.get_logits(image_features, text_features, logit_scale, logit_bias)
        labels = torch.arange(len(S)) + (self.rank * len(S) if self.local_loss else 0)
        return (cross_entropy(S, labels) + cross_entropy(T, labels)) / 2


class SigLipLoss(nn.Module):
    def forward(self, image_features, text_features, logit_scale, logit_bias):
        S = logit_scale * image_features @ text_features.T + logit_bias
        return -logsigmoid((2 * torch.eye(len(S)) - 1) * S).sum() / len(S)
