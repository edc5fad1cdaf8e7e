"""Record what a PyTorch learner does, and let JAX compute whole phases of it in one call."""
