"""What a network does in any dimension, proved: largest and smallest values, distances, slopes, counterexamples."""
