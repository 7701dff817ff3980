"""Points to train a flow with: batches of them, and what they must be."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor


def sampler(
    data: Tensor | Callable[[int], Tensor], features: int, generator: Generator | None
) -> Callable[[int], Tensor]:
    """Return a function that draws a batch of checked points, from a tensor of them or by a function that draws n."""
    if not isinstance(data, Tensor):
        if not callable(data):
            raise TypeError(
                f"fit takes a tensor of points or a function that draws n of them, got {type(data).__name__}; "
                f"torch.as_tensor makes one of an array"
            )
        return lambda n: checked(data(n), features)
    points = checked(data.detach(), features).reshape(-1, features)
    return lambda n: points[torch.randint(len(points), (n,), generator=generator).to(points.device)]


def checked(x: Tensor, features: int) -> Tensor:
    """Return x, or raise unless it is a tensor of at least one point of finite values."""
    if not isinstance(x, Tensor) or x.shape[-1:] != (features,) or x.numel() == 0:
        got = f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(
            f"fit needs points of {features} features, a tensor of shape (n, {features}), n > 0, got {got}"
        )
    bad = ~x.isfinite()
    if bad.any():
        raise ValueError(
            f"fit needs finite data, got {int(bad.sum())} values that are not, the first at index "
            f"{tuple(bad.nonzero()[0].tolist())}; drop or impute those rows"
        )
    return x
