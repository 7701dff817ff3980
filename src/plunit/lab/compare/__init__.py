"""One's own table: every activation on the same splits, starts and batches."""
