"""The interface of GradCache, written anew, since no package index has it."""


class GradCache:
    def __init__(self, models, chunk_sizes, loss_fn):
        self.models, self.rows, self.loss = models, chunk_sizes, loss_fn

    def __call__(self, *sides):
        leaves = [x.detach().clone().requires_grad_() for x in sides]
        loss = self.loss(*leaves)
        loss.backward()
        for model, side, leaf in zip(self.models, sides, leaves, strict=True):
            for x, gradient in zip(side.split(self.rows), leaf.grad.split(self.rows), strict=True):
                (model(x) * gradient).sum().backward()
        return loss.detach()
