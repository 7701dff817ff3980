"""Section 6: an invertible PLU network learns a map of the plane, and with it the inverse."""
