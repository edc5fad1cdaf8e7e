"""One learning step: critic, actor and target networks, at equal networks and batch."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import torch

from workshop import notebook
from workshop.benchmarks import cleanrl_style_ddpg, measure, replay
from workshop.benchmarks.measure import Options, Recorder, Target

TITLE = "Learning step"
PLAIN, PLAIN_DRAW = "this notebook, plain", "this notebook, plain, with its draw"
DEFAULT, DEFAULT_DRAW = "this notebook, default", "this notebook, default, with draw and update"
COMPILED = ", compiled"  # after each of these four
CLEANRL, CLEANRL_DRAW = "CleanRL style", "CleanRL style, with its draw"
SB3_DRAW, SBX_DRAW = "Stable-Baselines3 DDPG, with its draw", "SBX DDPG, with its draw"
PLAIN_MANY = "this notebook, plain, with its draw, compiled, 100 steps a call"
EXPLANATION = """\
One step of critic, actor and both target networks on a batch of 64, networks with two hidden
layers of 128 units, ReLU, Adam, tau 0.005, one critic, and, unlike in the presets, where the actor
learns in every second step, an actor step for every critic step.

- *this notebook, plain*: its `DDPG.learn` with normalisation and NoisyNet switched off, which are
  the same networks as the peers have. *With its draw*: uniform replay and the split into a batch.
- *compiled*: the same step by `workshop.training.compiled`, one call a step.
- *this notebook, default*: the same with layer normalisation, NoisyNet and the fixed input scale,
  which the peers do not have. *With draw and update*: prioritized replay of 1,000,000.
- *100 steps a call*: all batches are drawn first, which with uniform replay is the same algorithm.
- *Stable-Baselines3* and *SBX*: `DDPG("MlpPolicy", net_arch=[128, 128]).train(100, 64)` on a filled
  `ReplayBuffer` of 100,000 transitions of 20 environments, time per step. They draw in `train`; SBX
  runs the 100 steps in one compiled call.
- *CleanRL style*: the update of `cleanrl_style_ddpg.py`.

Without a draw, 64 batches take turns. All memories are filled with 100,000 transitions. One thread,
which is quickest for networks of this size."""

HELD = 100_000
BATCH = 64  # of the presets default and fast
BATCHES = 64  # that take turns where nothing is drawn: on one alone the losses would vanish
MANY = 100  # steps in one call, where that can be
PLAIN_SETTINGS = {"noisy_layers": False, "input_normalization": "none",
                  "actor_normalization": "none", "critic_normalization": "none",
                  "actor_hidden": (128, 128), "critic_hidden": (128, 128), "batch_size": BATCH,
                  "tau": 5e-3}


def ours(overrides: dict, rows, td_errors, engine: str = "torch"):
    """A learner step of the notebook without and with its memory."""
    definitions = notebook.definitions()
    settings = definitions.make_hyperparameters("default", overrides)
    generator = np.random.default_rng(0)
    agent = definitions.Agent(definitions.OBSERVATION_SCALE, replay.ACTION, 20, settings, generator,
                              engine=engine)
    agent.replay.add(rows, td_errors if settings.replay == "prioritized" else None)
    memory, noise = agent.replay, agent.weight_noise
    draws = [memory.sample(settings.batch_size, replay.BETA) for _ in range(BATCHES)]
    turn = itertools.cycle([(drawn, weights) for _, drawn, weights in draws])

    def with_draw():
        places, drawn, weights = memory.sample(settings.batch_size, replay.BETA)
        errors, *_ = agent.learner.learn(drawn, weights, noise.white(1))
        memory.update(places, errors)

    return lambda: agent.learner.learn(*next(turn), noise.white(1)), with_draw


def cleanrl_style(rows):
    """The single-file learner without and with its memory."""
    settings = cleanrl_style_ddpg.Settings(hidden=(128, 128), batch_size=BATCH, policy_frequency=1,
                                           learning_rate=1e-3, buffer_size=len(rows))
    learner = cleanrl_style_ddpg.Learner(replay.OBSERVATION, replay.ACTION, settings)
    memory = cleanrl_style_ddpg.UniformReplay(len(rows), replay.OBSERVATION, replay.ACTION, seed=0)
    observations, actions, rewards, _, next_observations = np.split(
        rows, np.cumsum([replay.OBSERVATION, replay.ACTION, 1, 1]), axis=1)
    memory.add(observations, next_observations, actions, rewards[:, 0], np.zeros(len(rows)))
    turn = itertools.cycle([memory.sample(settings.batch_size) for _ in range(BATCHES)])
    return (lambda: learner.update(*next(turn)),
            lambda: learner.update(*memory.sample(settings.batch_size)))


def of_library(library: str, rows):
    """100 steps of the DDPG of Stable-Baselines3 or SBX on a filled buffer of 20 environments."""
    from stable_baselines3.common.logger import Logger

    from workshop.benchmarks.peer_environment import Arms
    from workshop.benchmarks.sb3_training import LIBRARIES, ArmVecEnv

    arms = 20
    kind = importlib.import_module(LIBRARIES[library]).DDPG
    model = kind("MlpPolicy", ArmVecEnv(Arms(arms, seed=0)), device="cpu", batch_size=BATCH,
                 buffer_size=len(rows), policy_kwargs={"net_arch": [128, 128]}, seed=0)
    model.set_logger(Logger(folder=None, output_formats=[]))
    buffer = model.replay_buffer
    shape = (buffer.buffer_size, arms, -1)
    observations, actions, rewards, _, next_observations = np.split(
        rows[:buffer.buffer_size * arms], np.cumsum([replay.OBSERVATION, replay.ACTION, 1, 1]), 1)
    buffer.observations[:] = observations.reshape(shape)
    buffer.next_observations[:] = next_observations.reshape(shape)
    buffer.actions[:] = actions.reshape(shape)
    buffer.rewards[:] = rewards.reshape(shape[:2])
    buffer.full = True
    return lambda: model.train(MANY, BATCH)


def many_steps(overrides: dict, rows):
    """The compiled learner with its draw, 100 steps a call."""
    definitions = notebook.definitions()
    settings = definitions.make_hyperparameters("default", overrides)
    agent = definitions.Agent(definitions.OBSERVATION_SCALE, replay.ACTION, 20, settings,
                              np.random.default_rng(0), engine="compiled")
    agent.replay.add(rows)
    noise, with_actor = np.zeros((MANY, 1, 0), np.float32), np.ones(MANY, dtype=bool)
    weights = np.ones((MANY, BATCH), np.float32)

    def call():
        _, drawn, _ = agent.replay.sample(MANY * BATCH, replay.BETA)
        agent.learner.learn_phase(drawn.reshape(MANY, BATCH, -1), weights, noise, with_actor)

    return call


def run(options: Options, recorder: Recorder) -> None:
    """Measure all in turn."""
    rows, td_errors = replay.transitions(options.size(HELD, 2_000))
    capacity = {"replay_capacity": options.size(1_000_000, 2_048)}
    with measure.torch_threads(1):
        torch.manual_seed(0)
        plain, calls = PLAIN_SETTINGS | capacity | {"replay": "uniform"}, {}
        for names, overrides in (((PLAIN, PLAIN_DRAW), plain), ((DEFAULT, DEFAULT_DRAW), capacity)):
            for engine, more in (("torch", ""), ("compiled", COMPILED)):
                found = ours(overrides, rows, td_errors, engine)
                calls |= {name + more: call for name, call in zip(names, found, strict=True)}
        calls |= dict(zip((CLEANRL, CLEANRL_DRAW), cleanrl_style(rows), strict=True))
        calls[PLAIN_MANY] = many_steps(plain, rows)
        peers, missing = measure.build_peers({
            SB3_DRAW: lambda: of_library("Stable-Baselines3", rows),
            SBX_DRAW: lambda: of_library("SBX", rows)})
        seconds = measure.time_in_turn(calls | peers, options)
    for name in (PLAIN_MANY, SB3_DRAW, SBX_DRAW):
        if name in seconds:
            seconds[name] = [value / MANY for value in seconds[name]]
    recorder.put_seconds(seconds, missing)


def targets(measured) -> list[Target]:
    return [measure.at_least(
        f"Learning step: *{own}*, at least {bound} times as fast as *{peer}*",
        measure.ratio(measured, peer, own), bound) for own, peer, bound in (
            (DEFAULT_DRAW + COMPILED, DEFAULT_DRAW, 4), (PLAIN_MANY, SBX_DRAW, 1),
            (PLAIN_DRAW + COMPILED, CLEANRL_DRAW, 5), (PLAIN_DRAW + COMPILED, SB3_DRAW, 5))]
