"""How good the paper's alpha = 0.1 and c = 1 are: maps of the final loss over both. The paper makes no claim."""
