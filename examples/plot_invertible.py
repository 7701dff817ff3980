"""
An invertible network and its round trip
========================================

An ``InvertibleNetwork`` of PLU layers has an exact inverse, so a round trip loses nothing but rounding. How much that
is depends on the slopes: a block that contracts by 0.1 loses up to a digit. The certificate bounds it beforehand.
"""

import matplotlib.pyplot as plt
import torch

from plunit.invertible import PLU, InvertibleNetwork

x = torch.randn(200, 16, generator=torch.Generator().manual_seed(1))
kinds = {
    "alpha = 0.7 and 1/0.7 in turn": None,  # the default
    "alpha = 0.1, as in the paper": lambda features, index: PLU(features, alpha=0.1),
}
depths = [1, 2, 4, 8, 16]

# %%
# The largest error of ``inverse(network(x))`` over 200 points, and the bound of the certificate for the same points.
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for colour, (kind, activation) in zip(("C0", "C1"), kinds.items(), strict=True):
    errors, bounds = [], []
    for depth in depths:
        options = {} if activation is None else {"activation": activation}
        network = InvertibleNetwork(16, depth, generator=torch.Generator().manual_seed(0), **options)
        with torch.no_grad():
            errors.append((network.inverse(network(x)) - x).abs().max().item())
            bounds.append(network.certificate(x).round_trip_error)
    print(f"{kind}: largest error {errors[-1]:.1e} after {depth} blocks, certificate {bounds[-1]:.1e}")
    ax.plot(depths, errors, "o-", color=colour, label=kind)
    ax.plot(depths, bounds, "--", color=colour, label="its certificate")

# %%
# Where the certificate is above 1, no digit is left; choose other slopes, fewer blocks, or float64.
with torch.no_grad():
    wide = x.double()
    error = (network.double().inverse(network(wide)) - wide).abs().max()
print(f"the last network in float64: largest error {error:.1e}")
ax.axhline(1, color="grey", linewidth=0.8)
ax.set(
    xscale="log", yscale="log", xlabel="blocks", ylabel="largest error", title="Round trip of 16 features in float32"
)
ax.set_xticks(depths, depths)
ax.minorticks_off()
ax.legend(fontsize="small")
plt.show()
