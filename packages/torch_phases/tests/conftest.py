import gc

import pytest
import torch

from torch_phases import recording

torch.set_num_threads(1)  # so small networks lose time by more


@pytest.fixture(autouse=True)
def nothing_is_recorded():
    """What a test has recorded, or failed to, is no other test's."""
    yield
    assert gc.isenabled() and torch._dynamo.eval_frame._stance.stance == "default"
    torch._dynamo.reset()
    recording.RECORDERS.clear()
