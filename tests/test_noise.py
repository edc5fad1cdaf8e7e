"""Exploration noise: statistics of the noise on torques and of NoisyLinear.

Tolerances are five standard errors: a right implementation fails with chance 6e-7 a comparison,
and the seeds are fixed.
"""

import math
import re

import numpy as np
import pytest
import torch

import small_training
from tutorial.environments import Task
from tutorial.notebook import load_definitions
from tutorial.paths import DOC, NOTEBOOK

TASK = Task(np.ones(3, np.float32), 4, 30.0)


def make_agent(**options):
    """An agent whose only noise is on the torques."""
    return small_training.make_agent(task=TASK, noisy_layers=False, **options)


def played(agent, arms, decisions):
    """The noise of so many decisions of an episode, (decisions, arms, 4)."""
    agent.begin_episode()
    return np.array([agent.torque_noise((arms, 4)) for _ in range(decisions)])


def assert_white(samples):
    """No correlation between columns, nor between a row and the next; samples are (n, columns)."""
    n, columns = samples.shape
    tolerance = 5 / np.sqrt(n - 1)  # a correlation of independent numbers has deviation 1/sqrt(n)
    together = np.corrcoef(np.hstack([samples[:-1], samples[1:]]), rowvar=False)
    assert np.abs(together - np.eye(2 * columns)).max() < tolerance


def assert_moments(samples, variance):
    """Mean 0 and this variance, for independent normal samples."""
    assert abs(samples.mean()) < 5 * np.sqrt(variance / samples.size)
    assert abs(samples.var() / variance - 1) < 5 * np.sqrt(2 / samples.size)


@pytest.mark.parametrize("score, factor", [(0.0, 1.0), (15.0, 0.5)])
def test_gaussian_noise_is_white_and_fades_with_the_scores(score, factor):
    agent = make_agent(gaussian_sigma=0.3)
    agent.end_episode(np.full(20, score))
    samples = played(agent, 3, 20_000)
    assert samples.shape == (20_000, 3, 4) and samples.dtype == np.float32
    assert_moments(samples.astype(np.float64), (0.3 * factor) ** 2)
    assert_white(samples.reshape(len(samples), -1))


def test_ornstein_uhlenbeck_noise_has_its_stationary_moments():
    """That of the cell in doc/differences.md: variance sigma^2 / (1 - 0.85^2), correlation 0.85^k.

    The start from zero is forgotten as 0.85^60 = 6e-5. A correlation r of n pairs of normal numbers
    has the deviation (1 - r^2) / sqrt(n).
    """
    cells, page = load_definitions(NOTEBOOK), (DOC / "differences.md").read_text()
    exec(re.search(r"```python\n(.+?)```", page, re.DOTALL)[1], vars(cells))
    agent = make_agent(agent=cells.Agent, noise_schedule="constant")
    path = played(agent, 5_000, 66).astype(np.float64)
    start = path[60]
    assert_moments(start, 0.2**2 / (1 - 0.85**2))
    for k in range(1, 6):
        correlation = np.corrcoef(start.ravel(), path[60 + k].ravel())[0, 1]
        assert abs(correlation - 0.85**k) < 5 * (1 - 0.85 ** (2 * k)) / np.sqrt(start.size)


def factors(noise, layer):
    """f(epsilon) = sgn(epsilon) sqrt(|epsilon|) of inputs and outputs, number by number."""
    scaled = [math.copysign(math.sqrt(abs(e)), e) for e in noise.tolist()]
    return torch.tensor(scaled[: layer.in_features]), torch.tensor(scaled[layer.in_features :])


def test_initialisation_is_that_of_the_paper(notebook):
    """mu uniform within 1 / sqrt(inputs), sigma constant sigma_0 / sqrt(inputs) (section 3.2)."""
    torch.manual_seed(0)
    layer = notebook.NoisyLinear(400, 300, sigma=0.5)
    for mean in (layer.weight, layer.bias):
        values, bound = mean.detach().numpy(), 1 / 20
        assert np.abs(values).max() <= bound
        # Uniform: mean 0 +- b / sqrt(3 n), variance b^2 / 3 +- b^2 sqrt(4 / 45 n).
        assert abs(values.mean()) < 5 * bound / np.sqrt(3 * values.size)
        assert abs(values.var() - bound**2 / 3) < 5 * bound**2 * np.sqrt(4 / 45 / values.size)
    for sigma in (layer.sigma_weight, layer.sigma_bias):
        np.testing.assert_allclose(sigma.detach(), 0.5 / 20, rtol=1e-6)


def test_every_row_has_the_factorised_noise_itself(notebook):
    """eps_ij = f(eps_i) f(eps_j), spelled out as a weight matrix; and one draw serves all rows."""
    torch.manual_seed(0)
    layer, x, noise = notebook.NoisyLinear(4, 3, sigma=0.5), torch.randn(7, 4), torch.randn(7, 7)
    for sigma in (layer.sigma_weight, layer.sigma_bias):
        sigma.data.uniform_(0.1, 1.0)  # all differ, so a transposed or shared one is seen
    for k in range(7):
        noise_in, noise_out = factors(noise[k], layer)
        weight = layer.weight + layer.sigma_weight * torch.outer(noise_out, noise_in)
        expected = x @ weight.T + layer.bias + layer.sigma_bias * noise_out
        torch.testing.assert_close(layer(x, noise)[k], expected[k], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(layer(x, noise[k : k + 1]), expected, rtol=1e-5, atol=1e-6)


def test_all_layers_of_the_actor_but_the_first_are_noisy(notebook):
    actor, _ = notebook.noisy_networks(notebook.Hyperparameters(hidden_units=8), TASK)
    noisy = [layer for layer in actor.modules() if isinstance(layer, notebook.NoisyLinear)]
    plain = [layer for layer in actor.modules() if type(layer) is torch.nn.Linear]
    assert [layer.out_features for layer in noisy] == [8, 4]
    assert [layer.in_features for layer in plain] == [3] and sum(actor.noise_sizes) == 16 + 12
    seen, noise = torch.randn(5, 3), torch.randn(5, 28)
    hidden = noisy[0](plain[0](seen).relu(), noise[:, :16]).relu()
    torch.testing.assert_close(actor(seen, noise), noisy[1](hidden, noise[:, 16:]).tanh())
    quiet = make_agent().learner
    assert quiet.noise_size == 0 and torch.equal(quiet.act(seen, noise[:, :0]), quiet.act(seen))
