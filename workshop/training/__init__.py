"""Training: the learning step of the notebook as one compiled call."""
