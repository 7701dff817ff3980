"""
An invertible network and its round trip
========================================

An ``InvertibleNetwork`` of PLU layers has an exact inverse, so a round trip loses nothing but rounding. How much it
loses depends on the slopes: a block that contracts by 0.1 loses up to a digit. The certificate bounds how far the
inverse can stretch an error, for all points; the round trip of your own points is measured.
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
# The largest error of ``inverse(network(x))`` over 200 points.
errors = {}
for kind, activation in kinds.items():
    options = {} if activation is None else {"activation": activation}
    networks = [InvertibleNetwork(16, depth, generator=torch.Generator().manual_seed(0), **options) for depth in depths]
    with torch.no_grad():
        errors[kind] = [(network.inverse(network(x)) - x).abs().max().item() for network in networks]
    stretch = networks[-1].certificate().inverse_lipschitz
    print(
        f"{kind}: largest error {errors[kind][-1]:.1e} after 16 blocks, the inverse stretches by at most {stretch:.1e}"
    )

# %%
# Where the error is near 1, no digit is left. Choose other slopes, fewer blocks, or float64:
with torch.no_grad():
    network, wide = networks[-1].double(), x.double()
    error = (network.inverse(network(wide)) - wide).abs().max()
print(f"alpha = 0.1 in float64: largest error {error:.1e} after 16 blocks")
figure, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
for kind in kinds:
    ax.plot(depths, errors[kind], "o-", label=kind)
ax.axhline(1, color="grey", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="blocks", ylabel="largest error", title="Round trip in float32, 16 features")
ax.set_xticks(depths, depths)
ax.minorticks_off()
ax.legend(fontsize=10)
plt.show()
