"""The task's mirror symmetries, and what the networks make of them."""

import numpy as np
import pytest
import torch

from reacher.task import World

QUATERNIONS = [3, 4, 5, 6, 16, 17, 18, 19]


def test_mirrored_arms_stay_mirrored(notebook):
    """All that networks see, and rewards. Bodies to the last bit: signs do not round. The goal's
    position comes from an angle, whose sine is rounded to float32."""
    task, rng = World(4, 0), np.random.default_rng(0)
    task.set_parameters({"goal_size": 16.0})  # random torques touch it often
    task.reset()
    angle, speed = 40.0, 0.7
    task._goal_angle[:] = [angle, 180 - angle, -angle, 180 + angle]
    task._goal_speed[:] = [speed, -speed, -speed, speed]
    signs = notebook.MIRRORS.numpy()
    exact, seen = (np.setdiff1d(np.arange(size), QUATERNIONS) for size in (26, 33))
    paid = 0
    for _ in range(300):
        torques = rng.uniform(-1, 1, 4) * signs[:, 33:]
        observations, rewards, _ = task.step(torques)
        mirrored = observations[0] * signs[:, :33]
        np.testing.assert_array_equal(observations[:, exact], mirrored[:, exact])
        np.testing.assert_allclose(observations[:, seen], mirrored[:, seen], atol=1e-6)
        np.testing.assert_array_equal(rewards, rewards[0])
        paid += rewards[0]
    assert paid > 0  # so the rewards have been compared, too


@pytest.mark.parametrize("mirror", range(4))
def test_mirrors_make_policy_and_values_symmetric(notebook, mirror):
    """To the last bit: all four images of a scene are the same numbers to the networks."""
    torch.manual_seed(0)
    signs = notebook.MIRRORS[mirror]
    seen, actions = torch.randn(200, 33), torch.rand(200, 4)  # goals in all four sectors
    actor, critic = notebook.whole_networks(notebook.NoisySettings())
    with torch.no_grad():
        assert torch.equal(actor(seen * signs[:33]), actor(seen) * signs[33:])
        assert actor(seen).abs().min() > 0
        mirrored = critic(seen * signs[:33], actions * signs[33:])
        assert torch.equal(mirrored, critic(seen, actions))
        plain = notebook.PlainActor(notebook.OBSERVATION_SCALE, actor.layers)
        if mirror:  # the first is the scene itself
            assert not torch.equal(plain(seen * signs[:33]), plain(seen) * signs[33:])
