"""Losses, targets, schedules, update phases with every setting, and mirrors."""

import collections
import copy

import numpy as np
import pytest
import torch

import small_training
from reacher.episode import evaluate_policy
from reacher.task import World
from small_training import joined, make_batch, outcome, split_rows
from tutorial.environments import Task, open_environment

TASK = Task(np.array([1.0, 2.0, 4.0], dtype=np.float32), 2, 30.0)


def make_agent(**overrides):
    """For three observations and two actions; a phase comes when a test asks for it."""
    return small_training.make_agent(task=TASK, **{"train_freq": 10**6} | overrides)


def fill(agent, arms=4, decisions=30):
    """Let an agent live through random observations and rewards; they wait for a phase."""
    generator = np.random.default_rng(1)
    agent.begin_episode()
    for _ in range(decisions):
        observations = generator.standard_normal((arms, 3), np.float32)
        actions, rewards = agent.act(observations), generator.normal(size=arms)
        agent.remember(observations, actions, *outcome(observations, rewards))
        agent.learn_if_due()


def weights_of(*networks):
    """All parameters and buffers, copied."""
    return [tensor.clone() for network in networks for tensor in network.state_dict().values()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_targets_discount_by_gamma_to_the_k_and_stop_at_terminal_states(notebook):
    """By hand: y = R + gamma^k Q'(s', mu'(s')), with k = 3, k = 1 and a terminal state."""
    batch = notebook.Batch(
        observations=torch.zeros(3, 2),
        actions=torch.zeros(3, 1),
        rewards=torch.tensor([1.0, 2.0, 3.0]),
        discounts=torch.tensor([0.5**3, 0.5, 0.0]),
        next_observations=torch.tensor([[1.0, 0], [2.0, 0], [4.0, 0]]),
    )
    settings = notebook.PlainSettings()
    learner = notebook.WeightedDDPG(*notebook.plain_networks(settings), settings)
    learner.target_actor = lambda observations: 10 * observations[:, :1]
    learner.target_critic = lambda observations, actions: (observations + actions)[:, 0]
    assert learner.targets(batch).tolist() == [1 + 11 / 8, 2 + 22 / 2, 3]
    learner.critic = lambda observations, actions: torch.tensor([2.0, 15.0, 3.0])
    assert learner.td_errors(batch).tolist() == [0.375, -2.0, 0.0]
    learner.critic = lambda observations, actions: torch.zeros(3, 1)
    with pytest.raises(AssertionError, match="one value per row"):
        learner.td_errors(batch)


def test_gradient_steps_are_those_of_algorithm_1(notebook):
    """Of Lillicrap et al. (2016), in plain PyTorch, to the last bit."""
    settings = notebook.PlainSettings(hidden_units=8)
    learner = notebook.PlainDDPG(*notebook.plain_networks(settings), settings)
    actor, critic, slow_actor, slow_critic = copy.deepcopy(
        (learner.actor, learner.critic, learner.target_actor, learner.target_critic)
    )
    steps = [torch.optim.Adam(network.parameters(), 1e-3) for network in (critic, actor)]
    for seed in range(3):
        batch = split_rows(np.random.default_rng(seed).random((8, 72), np.float32))
        learner.learn(batch)
        seen, actions, rewards, discounts, following = batch
        with torch.no_grad():
            targets = rewards + discounts * slow_critic(following, slow_actor(following))
        losses = (
            lambda: (targets - critic(seen, actions)).square().mean(),
            lambda: -critic(seen, actor(seen)).mean(),
        )
        for loss, step in zip(losses, steps, strict=True):
            step.zero_grad()
            loss().backward()
            step.step()
        with torch.no_grad():
            for target, online in (slow_critic, critic), (slow_actor, actor):
                for old, new in zip(target.parameters(), online.parameters(), strict=True):
                    old.lerp_(new, settings.tau)
    by_hand = weights_of(actor, critic, slow_actor, slow_critic)
    own = learner.actor, learner.critic, learner.target_actor, learner.target_critic
    assert same(by_hand, weights_of(*own))


def test_importance_weights_count_in_the_critics_step_and_not_in_the_errors():
    """Weight 0 is the same as not being in the batch, but for the mean's denominator."""
    batch, gradients, weights = make_batch(), [], torch.tensor([1.0, 0.0]).repeat_interleave(8)
    for data, weight in ((batch, weights), (batch.at(slice(8)), torch.full((8,), 0.5))):
        learner = make_agent().learner
        learner.learn_critic(data, weight)
        gradients.append([p.grad for p in learner.critic.parameters()])
    torch.testing.assert_close(*gradients)
    noise = torch.zeros(1, learner.noise_size)
    one, other = (make_agent().learner.learn(batch, x, noise)[0] for x in (weights, weights + 1))
    assert torch.equal(one, other)


def test_new_transitions_and_sampled_ones_get_their_own_td_errors():
    """Of a place that was drawn more than once, the newest TD error counts."""
    agent = make_agent(gradient_steps=20, priority_exponent=1.0)
    fill(agent)
    own = agent.learner.td_errors(joined(agent.waiting)).detach().abs().numpy() + 1e-4
    learned, updated = [], []
    step, update = agent.learner.learn, agent.memory.update
    agent.learner.learn = lambda *inputs: learned.append(step(*inputs)) or learned[-1]
    agent.memory.update = lambda *inputs: (updated.append(inputs), update(*inputs))
    agent.update()
    assert not agent.waiting and agent.memory.ring.size == len(own) == 4 * 28 and len(learned) == 20
    (_, first), (indices, errors) = updated
    np.testing.assert_allclose(np.abs(first) + 1e-4, own, rtol=1e-6)
    np.testing.assert_array_equal(errors, [found for found, _ in learned])
    leaves = agent.memory.tree.sums[agent.memory.tree.leaves :]
    expected = own.astype(np.float64)
    expected[indices.ravel()] = np.abs(errors.ravel()) + 1e-4  # NumPy keeps the last, too
    assert len(np.unique(indices)) < indices.size
    np.testing.assert_allclose(leaves[: len(own)], expected, rtol=1e-5)


def test_beta_is_that_of_the_decision_and_rates_are_those_of_the_episode():
    options = {"importance_exponent_start": 0.4, "importance_anneal_steps": 600}
    agent = make_agent(gradient_steps=1, anneal_episodes=4, **options)
    betas, sample = [], agent.memory.sample
    agent.memory.sample = lambda *given: betas.append(given[1]) or sample(*given)
    for decisions, annealed, share in ((0, 0, 1), (100, 0, 1), (300, 3, 0.25), (900, 3, 0.25)):
        agent.schedules.annealed_episodes = annealed
        fill(agent)  # the rates of an episode are set when it begins
        agent.decisions = decisions
        agent.update()
        for name in ("actor", "critic"):
            [group] = vars(agent.learner)[f"{name}_optimizer"].param_groups
            assert group["lr"] == share * getattr(agent.settings, f"{name}_learning_rate")
    assert betas == pytest.approx([0.4, 0.5, 0.7, 1.0])


def test_learning_comes_when_the_settings_say():
    """A phase after every 7 decisions, as soon as 20 transitions are held."""
    agent = make_agent(train_freq=7, gradient_steps=3, n_step=1)
    step, phases = agent.learner.learn, collections.Counter()
    agent.learner.learn = lambda *given: phases.update([agent.decisions]) or step(*given)
    fill(agent, arms=2, decisions=50)
    # Of two arms, 2 k transitions are complete after k decisions: 14 after 7, 28 after 14.
    assert phases == dict.fromkeys((14, 21, 28, 35, 42, 49), 3)
    assert agent.memory.ring.size == 2 * 49 and agent.decisions == 50


def schedules_after(notebook, settings, scores, threshold=30.0, arms=20):
    """Schedules that have seen episodes with these scores of every arm."""
    found = notebook.Schedules(settings, threshold)
    for score in scores:
        found.end_episode(np.full(arms, score))
    return found


@pytest.mark.parametrize(
    "threshold, scores, expected",
    [
        (30.0, (1.0, 7.5, 3.0), 0.75),
        (30.0, (15.0,), 0.5),
        (30.0, (40.0, 2.0), 0.0),
        (200.0, (-200.0, 0.0), 0.5),  # from a first score below 0
        (0.0, (-40.0, -20.0), 0.5),
    ],
)
def test_noise_falls_on_the_way_to_a_threshold(notebook, threshold, scores, expected):
    found = schedules_after(notebook, notebook.Hyperparameters(), scores, threshold)
    assert found.noise_factor() == pytest.approx(expected, rel=1e-12)
    constant = notebook.Hyperparameters(noise_schedule="constant")
    assert schedules_after(notebook, constant, scores, threshold).noise_factor() == 1.0
    with pytest.raises(ValueError, match="no threshold: noise_schedule must be 'constant'"):
        schedules_after(notebook, notebook.Hyperparameters(), scores, None)


@pytest.mark.parametrize("arms, few", [(20, 1), (100, 1), (7, 3), (1, 20)])
def test_what_decides_are_means_over_at_least_twenty_arms(notebook, arms, few):
    schedules, scores = notebook.Schedules(notebook.Hyperparameters(), 40.0), []
    for arm_scores in np.random.default_rng(1).uniform(0, 40, (50, arms)):
        schedules.end_episode(arm_scores)
        scores.append(arm_scores.mean())
        means = [np.mean(scores[k - few : k]) for k in range(few, len(scores) + 1)]
        expected = max(means) / 40 if means else -np.inf
        assert schedules.progress() == pytest.approx(expected)


@pytest.mark.parametrize(
    "scores, threshold, episodes, expected",
    [
        ((38.0, 38.2, 1.0, 1.0, 1.0, 1.0), 30.0, 4, [1, 0.75, 0.5, 0.25, 0, 0]),
        ((38.2, 38.2, 38.2), 30.0, 2, [0.5, 0, 0]),
        ((38.0, 38.0), 30.0, 1, [1, 1]),  # 1.27 thresholds are 38.1
        ((38.2, 38.2), 30.0, None, [1, 1]),  # no end
        ((1e9,), None, 2, [1]),  # an environment that names no threshold
    ],
)
def test_learning_ends_in_equal_steps(notebook, scores, threshold, episodes, expected):
    settings = notebook.Hyperparameters(anneal_episodes=episodes, noise_schedule="constant")
    found = []
    for k in range(1, len(scores) + 1):
        found.append(schedules_after(notebook, settings, scores[:k], threshold).anneal_factor())
    assert found == pytest.approx(expected)


def test_noise_in_the_weights_fades_with_the_learning_rates():
    def noises(annealed):
        agent, found = make_agent(anneal_episodes=4), []
        agent.schedules.annealed_episodes = annealed
        act = agent.learner.act
        agent.learner.act = lambda seen, noise: found.append(noise.numpy()) or act(seen, noise)
        agent.act(np.zeros((4, 3), np.float32))
        return [*found, agent.weight_noise(7)]

    for whole, quarter in zip(noises(0), noises(3), strict=True):
        assert whole.any()
        np.testing.assert_array_equal(quarter, whole / 4)


def test_after_learning_the_agent_plays_without_noise(notebook, small):
    """It scores as its mean weights do, and neither memory nor weights change."""
    agent = small_training.make_agent(anneal_episodes=2)
    agent.schedules.scores.append(100.0)  # so it anneals at once
    environment, twin = (open_environment("", small_training.ARMS, 0) for _ in range(2))
    for _ in range(2):  # the last two that learn
        notebook.train_episode(environment, agent)
        twin.reset(), twin.reset()  # the next episode begins by itself
    weights, held = weights_of(agent.learner.actor), (agent.memory.ring.size, len(agent.waiting))
    assert agent.log and not agent.learns
    scores = notebook.train_episode(environment, agent)
    np.testing.assert_allclose(scores, evaluate_policy(twin, agent.policy), rtol=1e-6)
    assert same(weights, weights_of(agent.learner.actor))
    assert (agent.memory.ring.size, len(agent.waiting)) == held
    assert agent.decisions == 3 * small_training.DECISIONS


def test_mirrored_arms_stay_mirrored(notebook):
    """All that networks see, and rewards. Bodies to the last bit: signs do not round. The goal's
    position comes from an angle, whose sine is rounded to float32."""
    task, rng = World(4, 0), np.random.default_rng(0)
    task.set_parameters({"goal_size": 16.0})  # random torques touch it often
    task.reset()
    angle, speed = 40.0, 0.7
    task._goal_angle[:] = [angle, 180 - angle, -angle, 180 + angle]
    task._goal_speed[:] = [speed, -speed, -speed, speed]
    signs, quaternions = notebook.MIRRORS.numpy(), [3, 4, 5, 6, 16, 17, 18, 19]
    exact, seen = (np.setdiff1d(np.arange(size), quaternions) for size in (26, 33))
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
