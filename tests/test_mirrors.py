"""The task's mirror symmetries, and what the agent makes of them."""

import numpy as np
import pytest
import torch

from reacher.task import Task
from tutorial.randomness import seed_everything

QUATERNIONS = [3, 4, 5, 6, 16, 17, 18, 19]


def test_mirrored_arms_stay_mirrored(notebook):
    """Whole observations and rewards. Bodies to the last bit: signs do not round. The goal's
    position comes from an angle, whose sine is rounded, and the quaternion's w has Unity's offset:
    both to float32's rounding."""
    task, rng = Task(4, 0), np.random.default_rng(0)
    task.set_parameters({"goal_size": 16.0})  # random torques touch it often
    task.reset()
    angle, speed = 40.0, 0.7
    task._goal_angle[:] = [angle, 180 - angle, -angle, 180 + angle]
    task._goal_speed[:] = [speed, -speed, -speed, speed]
    signs = notebook.MIRRORS.numpy()
    exact = np.setdiff1d(np.arange(26), QUATERNIONS)
    paid = 0
    for _ in range(300):
        torques = rng.uniform(-1, 1, 4) * signs[:, 33:]
        observations, rewards, _ = task.step(torques)
        mirrored = observations[0] * signs[:, :33]
        np.testing.assert_array_equal(observations[:, exact], mirrored[:, exact])
        np.testing.assert_allclose(observations, mirrored, atol=1e-6)
        np.testing.assert_array_equal(rewards, rewards[0])
        paid += rewards[0]
    assert paid > 0  # so the rewards have been compared, too


def seen_and_done(count=200):
    """Random observations (count, 33), with goals in all four sectors, and actions (count, 4)."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 33, generator=generator), torch.rand(count, 4, generator=generator)


@pytest.mark.parametrize("mirror", range(4))
def test_a_canonical_frame_makes_policy_and_values_symmetric(notebook, defaults, mirror):
    """To the last bit: all four images of a scene are the same numbers to the networks."""
    learner = notebook.DDPG(notebook.OBSERVATION_SCALE, 4, defaults(mirrors="canonical"))
    signs, (seen, actions) = notebook.MIRRORS[mirror], seen_and_done()
    mirrored = seen * signs[:33]
    chosen = learner.act(seen)
    assert torch.equal(learner.act(mirrored), chosen * signs[33:])
    assert chosen.abs().min() > 0
    with torch.no_grad():
        values = learner.critic(seen, actions)
        assert torch.equal(learner.critic(mirrored, actions * signs[33:]), values)
    plain = notebook.DDPG(notebook.OBSERVATION_SCALE, 4, defaults(mirrors="none"))
    if mirror:  # the first is the scene itself
        assert not torch.equal(plain.act(mirrored), plain.act(seen) * signs[33:])


def test_a_canonical_frame_makes_mirrored_samples_vain(notebook, defaults):
    """So there is no way called both: a gradient step is the same to the last bit."""
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.standard_normal((64, 72)).astype(np.float32))
    weights, results = torch.ones(64), []
    for drawn in (np.zeros(64, int), rng.integers(4, size=64)):
        seed_everything(0)
        learner = notebook.DDPG(notebook.OBSERVATION_SCALE, 4, defaults(mirrors="canonical"))
        noise = torch.zeros(1, learner.noise_size)
        learner.learn(rows * torch.from_numpy(notebook.ROW_MIRRORS[drawn]), weights, noise)
        results.append([*learner.actor.parameters(), *learner.critic.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_mirrored_samples_are_drawn_evenly(notebook, defaults):
    """Each mirror in a quarter of 3,840 samples, within five standard errors of 0.007."""
    settings = defaults(mirrors="samples", learning_starts=64, replay="uniform")
    agent = notebook.Agent(
        notebook.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0), engine="torch"
    )
    rng = np.random.default_rng(1)
    row = np.abs(rng.standard_normal((64, 72)).astype(np.float32))
    agent.replay.add(row)
    shown, learn = [], agent.ddpg.learn
    agent.ddpg.learn = lambda rows, *rest: shown.append(rows.numpy()) or learn(rows, *rest)
    for _ in range(2):
        notebook.learning_phase(agent, 30)
    signs = np.sign(np.concatenate(shown).reshape(-1, 72))
    share = [(signs == mirror).all(axis=1).mean() for mirror in notebook.ROW_MIRRORS]
    assert sum(share) == 1
    np.testing.assert_allclose(share, 0.25, atol=0.035)


def test_what_has_no_mirrors_is_trained_without(notebook):
    quiet = notebook.make_hyperparameters("default", {}, has_mirrors=False)
    assert quiet.mirrors == "none"
    with pytest.raises(ValueError, match="the arms' mirrors: choose 'none' here"):
        notebook.make_hyperparameters("default", {"mirrors": "canonical"}, has_mirrors=False)
    with pytest.raises(ValueError, match="this has 3: set mirrors to 'none'"):
        settings = notebook.make_hyperparameters("default", {"mirrors": "canonical"})
        notebook.DDPG(np.ones(3, np.float32), 1, settings)
