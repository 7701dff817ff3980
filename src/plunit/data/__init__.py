"""The data set of section 5: found in a cache folder or fetched, and verified to the byte before use."""
