"""Section 5: the paper's convolutional network on CIFAR-10, with four activations and more."""
