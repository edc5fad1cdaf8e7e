"""Fixtures of the tests of research."""

import torch

from lines import register

torch.set_num_threads(1)  # as in the trainings
