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
errors, bounds = {}, {}
for kind, activation in kinds.items():
    options = {} if activation is None else {"activation": activation}
    networks = [InvertibleNetwork(16, depth, generator=torch.Generator().manual_seed(0), **options) for depth in depths]
    with torch.no_grad():
        errors[kind] = [(network.inverse(network(x)) - x).abs().max().item() for network in networks]
        bounds[kind] = [network.certificate(x).round_trip_error for network in networks]
    print(f"{kind}: largest error {errors[kind][-1]:.1e} after 16 blocks, certificate {bounds[kind][-1]:.1e}")

# %%
# Where the certificate is above 1, no digit need be left. Choose other slopes, fewer blocks, or float64:
with torch.no_grad():
    network, wide = networks[-1].double(), x.double()
    error = (network.inverse(network(wide)) - wide).abs().max()
print(f"alpha = 0.1 in float64: largest error {error:.1e} after 16 blocks")
figure, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
for colour, kind in zip(("C0", "C1"), kinds, strict=True):
    ax.plot(depths, errors[kind], "o-", color=colour, label=kind)
    ax.plot(depths, bounds[kind], "--", color=colour, label="its certificate")
ax.axhline(1, color="grey", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="blocks", ylabel="largest error", title="Round trip in float32, 16 features")
ax.set_xticks(depths, depths)
ax.minorticks_off()
ax.legend(fontsize="small")
plt.show()
