"""`torch.compile` for whole phases of a PyTorch learner: many gradient steps become one call."""

from torch_phases.phases import Phases as compile

__all__ = ["compile"]
