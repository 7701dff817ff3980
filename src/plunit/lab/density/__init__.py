"""Section 6: densities, for which an invertible network must also train well."""
