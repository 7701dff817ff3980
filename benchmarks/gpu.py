"""PLU against ReLU on a GPU: the composite and the Triton kernel, float32 and float16, forward and backward.

It needs a device of CUDA, ROCm or XPU, and says so if there is none. It has not run on such a device yet.
"""

import torch
from torch import nn
from torch.utils import benchmark

from benchmarks.timing import Bar, show
from plunit.torch import PLU, op, use_triton

SIZES = {1000: 3.0, 1_000_000: None, 4_000_000: 1.05, 16_000_000: 1.05, 64_000_000: 1.05}


def seconds(module: nn.Module, x: torch.Tensor, grad: torch.Tensor) -> float:
    """Median time of forward and backward; the timer waits for the device."""
    wanted = [x, *module.parameters()]
    timer = benchmark.Timer(
        "torch.autograd.grad(module(x), wanted, grad)",
        globals={"torch": torch, "module": module, "x": x, "wanted": wanted, "grad": grad},
    )
    return timer.adaptive_autorange(min_run_time=0.2).median


def compare(name: str, device: torch.device, dtype: torch.dtype) -> None:
    """Print the rows of one implementation."""
    for n, limit in SIZES.items():
        x = torch.randn(n, device=device, dtype=dtype, requires_grad=True)
        grad = torch.randn(n, device=device, dtype=dtype)
        value = seconds(PLU(), x, grad) / seconds(nn.ReLU(), x, grad)
        bar = Bar(limit) if limit and name == "triton" else None
        show(f"{name}: PLU forward+backward / relu, {n:,} elements, {dtype}", value, bar)
    x = torch.randn(64, 64, 112, 112, device=device, dtype=dtype, requires_grad=True)
    module, peer = (m.to(device, dtype) for m in (PLU(learnable=True, num_parameters=64), nn.PReLU(64)))
    value = seconds(module, x, torch.randn_like(x)) / seconds(peer, x, torch.randn_like(x))
    show(f"{name}: learnable per-channel PLU / nn.PReLU, {tuple(x.shape)}, {dtype}", value, None)


def main() -> None:
    """Print the table, if there is a device."""
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device is None or device.type not in ("cuda", "xpu"):
        print("gpu: no device of CUDA, ROCm or XPU here; nothing is timed")
        return
    print(f"gpu: {torch.get_device_module(device).get_device_name(device)}")
    for dtype in (torch.float32, torch.float16):
        compare("composite", device, dtype)
        use_triton()
        compare("triton", device, dtype)
        op.use_triton(False)


if __name__ == "__main__":
    main()
