"""The pieces of the networks of sections 2-4: what the stored weights of `plunit.lab.fit` say, without training."""

from plunit.lab.fit.spec import SPECS
from plunit.lab.pieces.claims import claims
from plunit.lab.pieces.count import derive
from plunit.lab.pieces.figures import figures
from plunit.lab.pieces.summary import rows

__all__ = ["SPECS", "claims", "derive", "figures", "rows"]
