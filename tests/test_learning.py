"""Hyperparameters, networks, losses, targets, and one update phase with every setting."""

from __future__ import annotations

import copy
import functools
import types

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import small_training
from reacher.episode import evaluate_policy
from research.bugs import BATCH
from tutorial.environments import open_environment
from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK

SCALE = np.array([1.0, 2.0, 4.0], dtype=np.float32)  # of three observations
SMALL = {
    "actor_hidden": (16, 16),
    "critic_hidden": (16, 16),
    "batch_size": 16,
    "learning_starts": 20,
    "replay_capacity": 1000,
}


def make_agent(notebook, defaults, arms=4, seed=0, **overrides):
    """A small agent for three observations and two actions."""
    torch.manual_seed(seed)
    return notebook.Agent(SCALE, 2, defaults(**{**SMALL, **overrides}), np.random.default_rng(seed))


@pytest.fixture(scope="module")
def normalized(notebook):
    """The notebook's definitions with other normalizations of the hidden layers."""
    none = "nn.LayerNorm(outputs), nn.ReLU()", "nn.ReLU()"
    return {"layer": notebook} | {
        name: load_definitions(NOTEBOOK, [edit])
        for name, edit in (("batch", *BATCH), ("none", none))
    }


def seen_by(arms, generator):
    return generator.normal(size=(arms, 3)).astype(np.float32)


def fill(notebook, agent, arms=4, decisions=30, seed=1):
    """Let the agent live through one short episode of random observations and rewards."""
    generator = np.random.default_rng(seed)
    agent.begin_episode()
    for _ in range(decisions):
        observations = seen_by(arms, generator)
        agent.remember(observations, agent.act(observations), generator.normal(size=arms))
    agent.end_episode(terminal=False)
    notebook.store_new_transitions(agent)


def make_rows(size=16, seed=0, discount=0.9):
    """Transitions (size, 10) as the replay holds them."""
    rows = np.random.default_rng(seed).standard_normal((size, 10), np.float32)
    rows[:, 3:5] = np.tanh(rows[:, 3:5])
    rows[:, 6] = discount
    return rows


def make_batch(notebook, size=16, seed=0):
    return notebook.split_rows(torch.from_numpy(make_rows(size, seed)), 3, 2)


def ones(size=16):
    return np.ones(size, np.float32)


def learn(ddpg, rows, weights=None, seed=0, with_actor=True):
    """One gradient step; the noise of the actor's loss follows from the seed."""
    noise = np.random.default_rng(seed).standard_normal((1, ddpg.noise_size), np.float32)
    weights = ones(len(rows)) if weights is None else weights
    return ddpg.learn(*map(torch.from_numpy, (rows, weights, noise)), with_actor)


def weights_of(*networks):
    """All parameters and running statistics, copied."""
    return [tensor.clone() for network in networks for tensor in network.state_dict().values()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


# ---------------------------------------------------------------------------------- losses, targets


def test_targets_discount_by_gamma_to_the_k_and_stop_at_terminal_states(notebook):
    """By hand: y = R + gamma^k Q'(s', mu'(s')), with k = 3, k = 1 and a terminal state."""
    batch = notebook.Batch(
        observations=torch.zeros(3, 2),
        actions=torch.zeros(3, 1),
        returns=torch.tensor([1.0, 2.0, 3.0]),
        discounts=torch.tensor([0.5**3, 0.5, 0.0]),
        next_observations=torch.tensor([[1.0, 0], [2.0, 0], [4.0, 0]]),
    )

    def target_actor(observations):
        return 10 * observations[:, :1]

    def target_critic(observations, actions):
        return observations[:, 0] + actions[:, 0]  # 11, 22, 44

    targets = notebook.td_targets(batch, target_actor, target_critic)
    assert targets.tolist() == [1 + 11 / 8, 2 + 22 / 2, 3]
    errors = notebook.td_error(batch, lambda s, a: torch.tensor([2.0, 15.0, 3.0]), targets)
    assert errors.tolist() == [0.375, -2.0, 0.0]
    loss = notebook.critic_loss(errors, torch.tensor([1.0, 0.25, 0.5]))
    assert loss.item() == pytest.approx((0.375**2 + 0.25 * 2.0**2) / 3)


def test_the_actor_loss_is_minus_the_mean_value_of_its_actions(notebook):
    """Q = 3 a^2 + s and mu(s) = w s at s = 1, 2: -mean Q = -(3 w^2 5 / 2 + 1.5)."""
    w = torch.tensor(0.5, requires_grad=True)
    loss = notebook.actor_loss(
        torch.tensor([[1.0], [2.0]]), lambda s, noise: w * s, lambda s, a: (3 * a**2 + s)[:, 0]
    )
    assert loss.item() == -(3 * 0.25 * 2.5 + 1.5)
    (gradient,) = torch.autograd.grad(loss, [w])
    assert gradient.item() == -(6 * 0.5 * 2.5)


def test_no_gradient_reaches_the_targets(notebook, defaults):
    ddpg = make_agent(notebook, defaults).ddpg
    targets = notebook.td_targets(make_batch(notebook), ddpg.target_actor, ddpg.target_critic)
    assert not targets.requires_grad
    learn(ddpg, make_rows())
    for network in (ddpg.target_actor, ddpg.target_critic):
        assert all(parameter.grad is None for parameter in network.parameters())


def test_each_optimiser_moves_its_own_network_only(notebook, defaults):
    """The actor's loss runs through the critic, and must not change it."""
    ddpg, batch = make_agent(notebook, defaults).ddpg, make_batch(notebook)
    actor, critic = weights_of(ddpg.actor), weights_of(ddpg.critic)
    noise = torch.randn(1, ddpg.noise_size)
    loss = notebook.actor_loss(batch.observations, ddpg.actor, ddpg.critic, noise)
    notebook.descend(loss, ddpg.actor_optimizer)
    assert not same(actor, weights_of(ddpg.actor)) and same(critic, weights_of(ddpg.critic))

    actor = weights_of(ddpg.actor)
    errors = notebook.td_error(batch, ddpg.critic, torch.zeros(16))
    notebook.descend(notebook.critic_loss(errors, torch.ones(16)), ddpg.critic_optimizer)
    assert same(actor, weights_of(ddpg.actor)) and not same(critic, weights_of(ddpg.critic))


def test_a_step_descends_by_its_own_gradient_alone(notebook):
    """Plain gradient descent with rate 1 moves by the gradient itself: (3, 4)."""
    x = torch.zeros(2, requires_grad=True)
    x.grad, loss = torch.ones(2), 3 * x[0] + 4 * x[1]  # what an earlier step left
    notebook.descend(loss, torch.optim.SGD([x], lr=1.0))
    assert x.tolist() == [-3, -4]


# ------------------------------------------------------------------------------------ soft updates


def test_targets_start_as_copies(normalized, defaults):
    ddpg = make_agent(normalized["batch"], defaults).ddpg
    assert same(weights_of(ddpg.actor), weights_of(ddpg.target_actor))
    assert same(weights_of(ddpg.critic), weights_of(ddpg.target_critic))
    online = {p.data_ptr() for net in (ddpg.actor, ddpg.critic) for p in net.parameters()}
    target = {
        p.data_ptr() for net in (ddpg.target_actor, ddpg.target_critic) for p in net.parameters()
    }
    assert not online & target


@pytest.mark.parametrize("normalization", ["layer", "batch", "none"])
def test_soft_updates_move_parameters_and_running_statistics_by_tau(
    normalized, defaults, normalization
):
    """Every floating-point number of both networks: theta' <- tau theta + (1 - tau) theta'."""
    tau = 0.25
    ddpg = make_agent(normalized[normalization], defaults, tau=tau).ddpg
    pairs = ((ddpg.actor, ddpg.target_actor), (ddpg.critic, ddpg.target_critic))
    for step in range(3):
        before = [{k: v.clone() for k, v in target.state_dict().items()} for _, target in pairs]
        learn(ddpg, make_rows(seed=step))
        for (online, target), old in zip(pairs, before, strict=True):
            statistics = 0
            for name, leader in online.state_dict().items():
                if not leader.is_floating_point():
                    continue  # batch normalization counts its batches
                expected = tau * leader + (1 - tau) * old[name]
                torch.testing.assert_close(target.state_dict()[name], expected)
                statistics += "running" in name and not torch.equal(leader, old[name])
            assert statistics == (4 if normalization == "batch" else 0)  # of two layers


# ----------------------------------------------------------------------------------------- learner


def test_learning_steps_lower_the_critic_loss_on_a_fixed_batch(notebook, defaults):
    ddpg = make_agent(notebook, defaults, tau=1e-6).ddpg
    rows, losses = make_rows(64), []
    for step in range(300):
        errors, loss, _ = learn(ddpg, rows, seed=step)
        assert float(loss) == pytest.approx(float((errors**2).mean()), rel=1e-4)
        losses.append(loss)
    assert losses[-1] < 0.5 * losses[0]


def test_learning_steps_raise_the_value_of_the_actors_actions(notebook, defaults):
    """With a critic that stays as it is, the actor climbs it."""
    ddpg = make_agent(notebook, defaults, critic_learning_rate=1e-12).ddpg
    rows, values = make_rows(64), []
    for step in range(100):
        values.append(-learn(ddpg, rows, 0 * ones(64), seed=step)[2])
    # The noise in the weights makes single values jump, so ends of ten are compared.
    assert np.mean(values[-10:]) > np.mean(values[:10]) + 0.01


def test_importance_weights_count_in_the_critics_step(notebook, defaults):
    """Weight 0 is the same as not being in the batch, but for the mean's denominator."""
    weights = 0 * ones()
    weights[:8] = 1.0
    gradients = []
    for rows, weight in ((make_rows(), weights), (make_rows()[:8], 0.5 * ones(8))):
        ddpg = make_agent(notebook, defaults).ddpg
        learn(ddpg, rows, weight, with_actor=False)
        gradients.append([p.grad for p in ddpg.critic.parameters()])
    for half, alone in zip(*gradients, strict=True):
        torch.testing.assert_close(half, alone)
    assert any(gradient.abs().max() > 1e-3 for gradient in gradients[0])


def test_priorities_come_from_the_bare_td_errors(notebook, defaults):
    """The importance weights belong into the loss alone."""
    one, other = (
        learn(make_agent(notebook, defaults).ddpg, make_rows(), np.float32(w) * ones())[0]
        for w in (1.0, 0.01)
    )
    np.testing.assert_array_equal(one, other)


def test_a_learning_phase_writes_the_new_priorities_back(notebook, defaults):
    """Of a place that was drawn more than once, the newest TD error counts."""
    agent = make_agent(notebook, defaults, gradient_steps=20, priority_exponent=1.0)
    fill(notebook, agent)
    learned, updated = [], []
    learn, update = agent.ddpg.learn, agent.replay.update
    agent.ddpg.learn = lambda *inputs: learned.append(learn(*inputs)) or learned[-1]
    agent.replay.update = lambda *inputs: (updated.append(inputs), update(*inputs))
    notebook.learning_phase(agent, agent.settings.gradient_steps)
    [(indices, errors)] = updated
    np.testing.assert_array_equal(errors, [found for found, *_ in learned])
    leaves = agent.replay.tree[len(agent.replay.tree) // 2 :]
    last = dict(zip(indices.ravel(), errors.ravel(), strict=True))
    assert len(last) < indices.size
    for place, error in last.items():
        assert leaves[place] == pytest.approx(abs(error) + 1e-4, rel=1e-6)


def test_beta_rises_linearly_to_its_end(notebook, defaults):
    agent = make_agent(
        notebook,
        defaults,
        gradient_steps=1,
        importance_exponent_start=0.4,
        importance_anneal_steps=600,
    )
    fill(notebook, agent)
    betas, sample = [], agent.replay.sample
    agent.replay.sample = lambda size, beta: (betas.append(beta), sample(size, beta))[1]
    for decisions in (0, 100, 300, 600, 900):
        agent.schedules.env_steps = decisions
        notebook.learning_phase(agent, agent.settings.gradient_steps)
    assert betas == pytest.approx([0.4, 0.5, 0.7, 1.0, 1.0])


def test_learning_steps_change_at_the_late_score(notebook, defaults):
    def steps(bests, reward_threshold=30.0, **annealed):
        settings = defaults(**{"gradient_steps": 3, "anneal_gradient_steps": 1, **annealed})
        schedules, found = notebook.Schedules(settings, reward_threshold), []
        for schedules.best_score in bests:
            schedules.first_score = 0.0
            found.append(schedules.num_gradient_steps(20))
        return found

    assert steps((0.0, 19.9, 20.0, 30.0), anneal_score=20.0) == [3, 3, 1, 1]
    assert steps((0.0, 38.0, 38.2)) == [3, 3, 1]  # by default at 1.27 times the reward threshold
    assert steps((114.2, 114.4), reward_threshold=90.0) == [3, 1]
    assert steps((1e9,), reward_threshold=None) == [3]  # an environment that names none
    assert steps((0.0, 38.2), anneal_gradient_steps=5) == [3, 3]  # never more than before
    assert steps((0.0, 38.2), anneal_gradient_steps=None) == [3, 3]


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_the_actor_learns_in_every_policy_delay_th_step(notebook, defaults, delay):
    """And the critic in each; across the ends of phases, and after an interruption."""
    agent = make_agent(notebook, defaults, gradient_steps=1, policy_delay=delay)
    fill(notebook, agent)
    for step in range(1, 8):
        actor, critic = weights_of(agent.ddpg.actor), weights_of(agent.ddpg.critic)
        notebook.learning_phase(agent, 1)
        assert agent.num_updates == step
        assert (not same(actor, weights_of(agent.ddpg.actor))) == (step % delay == 0)
        assert not same(critic, weights_of(agent.ddpg.critic))


def test_late_phases_learn_at_the_late_rate(notebook, defaults):
    """Adam's first step has the size of its learning rate, whatever the gradient.

    Adam moves a weight by rate * g / (|g| + 1e-8) at first; gradients here are above 1e-6 for
    the largest change, which is then the rate within 1 %.
    """
    changes = []
    for best_score in (19.9, 20.0):
        agent = make_agent(
            notebook,
            defaults,
            policy_delay=1,
            anneal_score=20.0,
            anneal_episodes=4,
            actor_learning_rate=1e-3,
            critic_learning_rate=4e-3,
        )
        fill(notebook, agent)
        schedules = agent.schedules
        schedules.first_score, schedules.best_score = 0.0, best_score
        schedules.annealed_episodes = 3 * schedules.is_annealing()
        before = [copy.deepcopy(getattr(agent.ddpg, name)) for name in ("actor", "critic")]
        notebook.learning_phase(agent, 1)
        changes.append(
            [
                max(
                    (new - old).abs().max().item()
                    for new, old in zip(
                        getattr(agent.ddpg, name).parameters(), network.parameters(), strict=True
                    )
                )
                for name, network in zip(("actor", "critic"), before, strict=True)
            ]
        )
    assert changes[0] == pytest.approx([1e-3, 4e-3], rel=0.01)
    assert changes[1] == pytest.approx([0.25e-3, 1e-3], rel=0.01)


def test_late_rates_fall_to_nothing_in_equal_steps(notebook, defaults):
    def factors(number, best=38.2, **annealed):
        agent = make_agent(notebook, defaults, **annealed)
        schedules, found = agent.schedules, []
        schedules.first_score, schedules.best_score = 0.0, best
        for _ in range(number):
            agent.begin_episode()
            found.append(schedules.anneal_factor())
            assert agent.learns == (schedules.anneal_factor() > 0)
            agent.end_episode(terminal=False)
        return found

    assert factors(6, anneal_episodes=4) == pytest.approx([1, 0.75, 0.5, 0.25, 0, 0])
    assert factors(3, anneal_episodes=2) == pytest.approx([1, 0.5, 0])
    assert factors(3, best=38.0, anneal_episodes=1) == [1, 1, 1]  # not late yet
    assert factors(3, anneal_episodes=None) == [1, 1, 1]  # no end


def test_noise_in_the_weights_fades_with_the_learning_rates(notebook, defaults):
    """In acting and in the actor's loss, from the same random numbers."""

    def noises(anneal_episodes):
        agent = make_agent(notebook, defaults, anneal_score=0.0, anneal_episodes=4)
        agent.schedules.first_score = agent.schedules.best_score = 0.0
        agent.schedules.annealed_episodes, found = anneal_episodes, []
        act, learn = agent.ddpg.act, agent.ddpg.learn
        agent.ddpg.act = lambda seen, noise: found.append(noise.numpy()) or act(seen, noise)
        agent.ddpg.learn = lambda rows, weights, noise, with_actor: (
            found.append(noise.numpy()) or learn(rows, weights, noise, with_actor)
        )
        agent.act(np.zeros((4, 3), np.float32))
        agent.replay.add(make_rows(), ones())
        notebook.learning_phase(agent, 2)
        return found

    for whole, quarter in zip(noises(0), noises(3), strict=True):
        assert whole.any()
        np.testing.assert_array_equal(quarter, whole / 4)


def test_when_learning_has_ended_the_agent_plays_without_noise_and_keeps_what_it_is(
    notebook, monkeypatch
):
    """It scores as its mean weights do, and neither memory nor weights change."""
    small_training.shrink(monkeypatch.setattr)
    agent = small_training.make_agent("an end of learning")
    environment, twin = (open_environment("", small_training.ARMS, 0) for _ in range(2))
    for _ in range(2):  # the last two that learn
        notebook.run_episode(environment, agent)
    twin.restore(environment.state())
    weights, steps = weights_of(agent.ddpg.actor), agent.num_updates
    decisions, waiting = agent.schedules.env_steps, len(agent.new_transitions)
    assert steps > 0
    scores = notebook.run_episode(environment, agent)
    policy = functools.partial(agent.act, explore=False)
    np.testing.assert_array_equal(scores, evaluate_policy(twin, policy))
    assert same(weights, weights_of(agent.ddpg.actor)) and agent.num_updates == steps
    assert (
        agent.replay is None and agent.schedules.env_steps == decisions + small_training.DECISIONS
    )
    assert len(agent.new_transitions) == waiting
    assert agent.log["noise"] == 0


@given(
    arms=st.integers(1, 100),
    train_freq=st.integers(1, 100),
    steps=st.integers(0, 1000),
    batch=st.integers(2, 512),
    ratio=st.floats(0.01, 1000),
)
def test_transitions_are_not_drawn_more_often_than_replay_ratio(
    notebook, defaults, arms, train_freq, steps, batch, ratio
):
    """On average over a phase; it may begin one step too many, which makes one batch."""
    settings = defaults(
        gradient_steps=steps, train_freq=train_freq, batch_size=batch, max_samples_per_insert=ratio
    )
    new = arms * train_freq
    found = notebook.Schedules(settings, 30.0).num_gradient_steps(arms)
    assert 0 <= found <= steps and (found - 1) * batch < ratio * new
    assert found == steps or found * batch >= ratio * new


# ------------------------------------------------------------------------------ every option works

OPTIONS = [
    {},
    {"actor_hidden": (16,), "critic_hidden": (8,)},
    {"actor_hidden": (8, 4, 6)},
    {"critic_hidden": (16, 16, 16)},
    {"gaussian_sigma": 0.0},
    {"noisy_layers": False},
    {"noise_schedule": "constant"},
    {"reward_scale": 0.1},
    {"replay": "uniform"},
    {"replay": "uniform", "n_step": 1},
    {"priority_exponent": 0.0},
    {"n_step": 1},
    {"n_step": 10},
    {"discount": 0.0},
    {"tau": 1.0},
]


@pytest.mark.parametrize("overrides", OPTIONS, ids=str)
def test_every_option_acts_and_learns(notebook, defaults, overrides):
    acts_and_learns(notebook, defaults, overrides)


@pytest.mark.parametrize("normalization", ["batch", "none"])
def test_an_edited_normalization_acts_and_learns(normalized, defaults, normalization):
    acts_and_learns(normalized[normalization], defaults)


def acts_and_learns(notebook, defaults, overrides=types.MappingProxyType({})):
    """All that can learn changes in two phases, and what acts is finite and in range."""
    agent = make_agent(notebook, defaults, **overrides)
    networks = agent.ddpg.actor, agent.ddpg.critic
    before = weights_of(*networks)
    fill(notebook, agent)
    assert len(agent.replay) == 4 * 29  # the last decision of each arm is dropped
    notebook.learning_phase(agent, agent.settings.gradient_steps)
    fill(notebook, agent)
    assert agent.num_updates > 0
    moved = weights_of(*networks)
    assert all(tensor.isfinite().all() for tensor in moved)
    names = [name for network in networks for name, _ in network.state_dict().items()]
    fixed = [
        name for name, old, new in zip(names, before, moved, strict=True) if torch.equal(old, new)
    ]
    assert all("factor" in name for name in fixed), fixed  # all but the constant scale has learned
    actions = agent.act(seen_by(4, np.random.default_rng(5)))
    assert actions.shape == (4, 2) and actions.dtype == np.float32
    assert np.abs(actions).max() <= 1
    assert all(np.isfinite(value) for value in agent.log.values())
    assert agent.log["noise"] > 0


def test_the_fixed_scale_divides_observations_and_not_actions(notebook, defaults):
    x, a = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0.5, -0.5]])
    critic, seen = notebook.Critic(SCALE, 2, defaults(**SMALL)), []
    for block in critic.blocks:
        block.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    critic(x, a)
    assert seen[0].tolist() == [[1, 1, 1, 0.5, -0.5]]
    assert seen[1].shape[1] == 16


def test_a_hidden_layer_is_normalized_and_rectified(notebook):
    """By hand: 3 and 5 have mean 4 and deviation 1, up to LayerNorm's epsilon of 1e-5."""
    layer = notebook.block(1, 2)
    with torch.no_grad():
        layer[0].weight.copy_(torch.tensor([[3.0], [5.0]])), layer[0].bias.zero_()
        np.testing.assert_allclose(layer(torch.ones(1, 1)), [[0, 1]], atol=1e-5)


# ------------------------------------------------------------------------------------------ acting


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"gaussian_sigma": 0.0},
        {"noisy_layers": False},
    ],
    ids=str,
)
def test_exploring_differs_from_arm_to_arm_and_greedy_acting_does_not(
    notebook, defaults, overrides
):
    agent = make_agent(notebook, defaults, arms=10, **overrides)
    observations = np.tile(seen_by(1, np.random.default_rng(0)), (10, 1))
    agent.begin_episode()
    explored = agent.act(observations)
    assert len(np.unique(explored, axis=0)) == 10  # every arm has noise of its own
    assert not np.array_equal(agent.act(observations), explored)  # and every decision
    greedy = agent.act(observations, explore=False)
    # One batch may round the same row differently in different places, so not bit for bit.
    np.testing.assert_allclose(greedy, np.tile(greedy[:1], (10, 1)), atol=1e-6)
    np.testing.assert_array_equal(agent.act(observations, explore=False), greedy)


def test_action_noise_is_scaled_by_its_factor(notebook, defaults):
    for best_score, factor in ((0.0, 1.0), (15.0, 0.5), (30.0, 0.0)):
        agent = make_agent(notebook, defaults, arms=500, noisy_layers=False, gaussian_sigma=0.1)
        agent.schedules.first_score, agent.schedules.best_score = 0.0, best_score
        observations = seen_by(500, np.random.default_rng(0))
        difference = agent.act(observations) - agent.act(observations, explore=False)
        # 1000 normal numbers: the standard deviation is right within 2.2 %; five times that.
        assert difference.std() == pytest.approx(0.1 * factor, rel=0.11, abs=1e-7)


def test_the_logged_noise_is_the_mean_distance_from_the_greedy_actions(notebook, defaults):
    agent = make_agent(notebook, defaults, train_freq=1)
    observations = seen_by(4, np.random.default_rng(0))
    actions = agent.act(observations)
    agent.remember(observations, actions, np.zeros(4))
    expected = np.abs(actions - agent.act(observations, explore=False)).mean()
    assert agent.log["noise"] == pytest.approx(expected, rel=1e-6)
