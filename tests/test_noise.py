"""Exploration noise: statistics of the action noise and of NoisyLinear.

Tolerances are five standard errors: a right implementation fails with chance 6e-7 a comparison,
and the seeds are fixed.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from research.bugs import cells_with
from tutorial.notebook import load_definitions
from tutorial.paths import DOC, NOTEBOOK

SCALE = np.ones(3, np.float32)  # of three observations


def agent_of(notebook, defaults, arms, seed=0, **overrides):
    """An agent for three observations and four torques, whose only noise is on the actions."""
    settings = defaults(
        actor_hidden=(4,),
        critic_hidden=(4,),
        noisy_layers=False,
        replay_capacity=1_000,
        **overrides,
    )
    torch.manual_seed(0)
    return notebook.Agent(SCALE, 4, settings, np.random.default_rng(seed))


def played(agent, arms, decisions):
    """The noise of so many decisions of an episode, (decisions, arms, 4)."""
    agent.begin_episode()
    samples = []
    for _ in range(decisions):
        agent.act(np.zeros((arms, 3), np.float32))
        samples.append(agent.action_noise)
    return np.array(samples)


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


# ------------------------------------------------------------------------------------ action noise


def test_gaussian_noise_is_white_and_independent(notebook, defaults):
    agent = agent_of(notebook, defaults, 3, gaussian_sigma=0.3)
    samples = played(agent, 3, 20_000)
    assert samples.shape == (20_000, 3, 4) and samples.dtype == np.float32
    samples = samples.astype(np.float64)
    assert_moments(samples, 0.3**2)
    assert_white(samples.reshape(len(samples), -1))


@pytest.fixture(scope="module", params=["museum", "page"])
def course(request):
    """The notebook's definitions with Ornstein-Uhlenbeck noise: that of the museum of bugs, or
    the cell of doc/differences.md."""
    if request.param == "museum":
        return cells_with("course_noise")
    cells, page = load_definitions(NOTEBOOK), (DOC / "differences.md").read_text()
    exec(re.search(r"```python\n(.+?)```", page, re.DOTALL)[1], vars(cells))
    return cells


def test_ornstein_uhlenbeck_noise_has_its_stationary_moments(course, defaults):
    """Variance sigma^2 / (1 - 0.85^2) and correlation 0.85^k over k decisions.

    The start from zero is forgotten as 0.85^60 = 6e-5. A correlation r of n pairs of normal numbers
    has the deviation (1 - r^2) / sqrt(n).
    """
    agent = agent_of(course, defaults, 5_000, noise_schedule="constant")
    path = played(agent, 5_000, 66).astype(np.float64)
    start = path[60]
    assert_moments(start, 0.2**2 / (1 - 0.85**2))
    for k in range(1, 6):
        correlation = np.corrcoef(start.ravel(), path[60 + k].ravel())[0, 1]
        assert abs(correlation - 0.85**k) < 5 * (1 - 0.85 ** (2 * k)) / np.sqrt(start.size)


def test_ornstein_uhlenbeck_noise_is_independent_for_every_arm_and_torque(course, defaults):
    """Its pushes, x' - 0.85 x, are white, centered and as large as sigma."""
    agent = agent_of(course, defaults, 3, noise_schedule="constant")
    path = played(agent, 3, 20_000).reshape(20_000, -1).astype(np.float64)
    pushes = path[1:] - 0.85 * path[:-1]
    assert_moments(pushes, 0.2**2)
    assert_white(pushes)


def test_ornstein_uhlenbeck_noise_starts_at_zero_in_each_episode(course, defaults):
    """One push from zero, not the stationary 0.38^2."""
    agent = agent_of(course, defaults, 5_000, noise_schedule="constant")
    for _ in range(2):
        assert_moments(played(agent, 5_000, 30)[0].astype(np.float64), 0.2**2)


def test_without_sigma_no_noise_is_added_and_none_is_drawn(notebook, defaults):
    """The generator is left as it was, so that what it draws next is the same."""
    agent, observations = agent_of(notebook, defaults, 5, gaussian_sigma=0.0), np.ones((5, 3), "f4")
    before = agent.generator.bit_generator.state
    actions = agent.act(observations)
    np.testing.assert_array_equal(actions, agent.act(observations, explore=False))
    assert actions.dtype == np.float32
    assert agent.generator.bit_generator.state == before
    assert not hasattr(agent, "action_noise")


# --------------------------------------------------------------------------------------- schedules


def schedules(notebook, settings, reward_threshold=30.0, first_score=0.0, **then):
    """Schedules at a point of a training."""
    found = notebook.Schedules(settings, reward_threshold)
    vars(found).update({"first_score": first_score, "best_score": 0.0} | then)
    return found


@pytest.mark.parametrize(
    "schedule, then, expected",
    [
        ("constant", {"env_steps": 10**6, "episodes": 9, "best_score": 39.0}, 1.0),
        ("best_score", {}, 1.0),
        ("best_score", {"best_score": 7.5}, 0.75),
        ("best_score", {"env_steps": 10**6, "episodes": 9, "best_score": 15.0}, 0.5),
        ("best_score", {"best_score": 30.0}, 0.0),
        ("best_score", {"best_score": 40.0}, 0.0),
        ("best_score", {"best_score": -900.0}, 1.0),
        ("best_score", {"best_score": 45.0, "reward_threshold": 90.0}, 0.5),
    ],
)
def test_noise_factors_by_hand(notebook, defaults, schedule, then, expected):
    found = schedules(notebook, defaults(noise_schedule=schedule), **then).noise_factor()
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "threshold, first, scores",
    [
        (30.0, 1.0, (0, 15, 30)),
        (200.0, -200.0, (-200, 0, 200)),
        (0.0, -40.0, (-40, -20, 0)),
        (-3.75, -43.75, (-43.75, -23.75, -3.75)),
        (-200.0, -100.0, (-300, -201, -200)),
    ],
)
def test_noise_falls_on_the_way_to_a_threshold_of_any_sign(
    notebook, defaults, threshold, first, scores
):
    """From 0, or from a first score below it; noise falls, and learning does not end, before it."""
    found = schedules(notebook, defaults(), threshold, first)
    shares = [0.0, 0.0, 1.0] if first > threshold else [0.0, 0.5, 1.0]
    for score, share in zip(scores, shares, strict=True):
        found.best_score = score
        assert found.noise_factor() == pytest.approx(1 - share)
        assert not found.is_annealing()
    untouched = notebook.Schedules(defaults(), threshold)  # before the first episode
    assert untouched.noise_factor() == untouched.anneal_factor() == 1.0


# ------------------------------------------------------------------------------------- NoisyLinear


def factors(noise, layer):
    """f(epsilon) = sgn(epsilon) sqrt(|epsilon|) of inputs and outputs, number by number."""
    scaled = [math.copysign(math.sqrt(abs(e)), e) for e in noise[0].tolist()]
    return torch.tensor([scaled[: layer.in_features]]), torch.tensor([scaled[layer.in_features :]])


def any_sigma(layer):
    """Let every sigma differ, so that a transposed or shared one is seen."""
    with torch.no_grad():
        layer.sigma_weight.uniform_(0.1, 1.0)
        layer.sigma_bias.uniform_(0.1, 1.0)
    return layer


def test_initialisation_is_that_of_the_paper(notebook):
    """mu uniform within 1 / sqrt(inputs), sigma constant sigma_0 / sqrt(inputs) (section 3.2)."""
    torch.manual_seed(0)
    layer = notebook.NoisyLinear(400, 300, sigma=0.5)
    for mean in (layer.weight, layer.bias):
        values = mean.detach().numpy()
        assert np.abs(values).max() <= 1 / 20
        # Uniform: mean 0 +- b / sqrt(3 n), variance b^2 / 3 +- b^2 sqrt(4 / 45 n).
        assert abs(values.mean()) < 5 * (1 / 20) / np.sqrt(3 * values.size)
        assert abs(values.var() - (1 / 20) ** 2 / 3) < 5 * (1 / 20) ** 2 * np.sqrt(
            4 / 45 / values.size
        )
    for sigma in (layer.sigma_weight, layer.sigma_bias):
        np.testing.assert_allclose(sigma.detach(), 0.5 / 20, rtol=1e-6)
    assert {name for name, _ in layer.named_parameters()} == {
        "weight",
        "bias",
        "sigma_weight",
        "sigma_bias",
    }


def test_noise_has_mean_zero_and_the_variance_of_the_factorised_form(notebook):
    """Output j deviates by f_j (sum_i sigma_ji x_i f_i + sigma_j), f = sgn(e) sqrt|e|.

    E f = 0 and E f^2 = E|e| = sqrt(2 / pi) =: m, so its variance is
    m^2 sum_i (sigma_ji x_i)^2 + m sigma_j^2.
    """
    torch.manual_seed(0)
    layer, x = any_sigma(notebook.NoisyLinear(6, 5, sigma=0.5)), torch.randn(6)
    rows = 200_000
    with torch.no_grad():
        noise, x_rows = torch.randn(rows, layer.noise_size), x.expand(rows, 6)
        samples = (layer(x_rows, noise) - layer(x_rows)).double().numpy()
    m = np.sqrt(2 / np.pi)
    sigma, bias = layer.sigma_weight.detach().numpy(), layer.sigma_bias.detach().numpy()
    variance = m**2 * ((sigma * x.numpy()) ** 2).sum(axis=1) + m * bias**2
    squared = samples**2
    assert (np.abs(samples.mean(0)) < 5 * np.sqrt(variance / rows)).all()
    assert (np.abs(squared.mean(0) - variance) < 5 * squared.std(0) / np.sqrt(rows)).all()


def test_every_weight_has_the_factorised_noise_itself(notebook):
    """eps_ij = f(eps_i) f(eps_j): one row of noise, spelled out as a weight matrix."""
    torch.manual_seed(0)
    layer, x = any_sigma(notebook.NoisyLinear(4, 3, sigma=0.5)), torch.randn(7, 4)
    noise = torch.randn(1, layer.noise_size)
    noise_in, noise_out = (part[0].double() for part in factors(noise, layer))
    weight = layer.weight.double() + layer.sigma_weight.double() * torch.outer(noise_out, noise_in)
    bias = layer.bias.double() + layer.sigma_bias.double() * noise_out
    expected = x.double() @ weight.T + bias
    torch.testing.assert_close(layer(x, noise).double(), expected, rtol=1e-5, atol=1e-6)


def test_a_noisy_layer_by_hand(notebook):
    """Two inputs, one output, all sigmas 0.5 / sqrt(2): f(4) = 2, f(-9) = -3, f(1) = 1."""
    layer = notebook.NoisyLinear(2, 1, sigma=0.5)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[10.0, 20.0]]))
        layer.bias.fill_(30.0)
    noise = torch.tensor([[4.0, -9.0, 1.0]])
    # (10 + 0.5 * 2 / sqrt(2)) 1 + (20 - 0.5 * 3 / sqrt(2)) 2 + 30 + 0.5 / sqrt(2)
    expected = 80 + (1 - 3 + 0.5) / math.sqrt(2)
    assert layer(torch.tensor([[1.0, 2.0]]), noise).item() == pytest.approx(expected, rel=1e-6)


def test_one_row_of_noise_and_a_row_for_each_of_the_batch_are_the_same_formula(notebook):
    """Two ways to compute it: a matrix of noise, or factors around a second matrix product."""
    torch.manual_seed(0)
    layer, x = any_sigma(notebook.NoisyLinear(6, 5, sigma=0.5)), torch.randn(4, 6)
    rows = torch.randn(4, layer.noise_size)
    together = layer(x, rows)
    for k in range(4):
        alone = layer(x, rows[k : k + 1])[k]
        torch.testing.assert_close(alone, together[k], rtol=1e-5, atol=1e-6)


def test_gradients_reach_mean_and_sigma(notebook):
    torch.manual_seed(0)
    layer, x = notebook.NoisyLinear(4, 3, sigma=0.5), torch.randn(10, 4)
    noise = torch.randn(1, layer.noise_size)
    layer(x, noise).sum().backward()
    noise_in, noise_out = factors(noise, layer)
    torch.testing.assert_close(layer.weight.grad, x.sum(0).expand(3, 4))
    torch.testing.assert_close(layer.sigma_weight.grad, noise_out.T * noise_in * x.sum(0))
    torch.testing.assert_close(layer.sigma_bias.grad, 10 * noise_out[0])


def test_noise_of_the_weights_forgets(notebook, defaults):
    """What the learner gets in two decisions: rows for each arm, drawn anew."""
    agent, found = notebook.Agent(SCALE, 2, defaults(), np.random.default_rng(0)), []
    act = agent.ddpg.act
    agent.ddpg.act = lambda seen, noise: found.append(noise.numpy()) or act(seen, noise)
    for _ in range(2):
        agent.act(np.zeros((1_000, len(SCALE)), np.float32))
    one, other = (noise[:, :10].astype(np.float64) for noise in found)
    assert found[0].shape == (1_000, agent.ddpg.noise_size) and found[0].dtype == np.float32
    for samples in (one, other):
        assert_moments(samples, 1.0)
        assert_white(samples)
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(one.size)


@pytest.mark.parametrize("hidden, noisy", [((8, 8), 2), ((8,), 1), ((8, 8, 8), 3)])
def test_all_layers_of_the_actor_but_the_first_are_noisy(notebook, defaults, hidden, noisy):
    actor = notebook.Actor(np.ones(5, np.float32), 2, defaults(actor_hidden=hidden))
    found = [layer for layer in actor.modules() if isinstance(layer, notebook.NoisyLinear)]
    assert len(found) == noisy and actor.noise_size == sum(layer.noise_size for layer in found)
    plain = [module for module in actor.modules() if type(module) is torch.nn.Linear]
    assert len(plain) == 1 and plain[0].in_features == 5
    quiet = notebook.Actor(
        np.ones(5, np.float32), 2, defaults(actor_hidden=hidden, noisy_layers=False)
    )
    assert quiet.noise_size == 0
