"""New transitions with their own TD errors as priorities: one batch, or one by one."""

from __future__ import annotations

import numpy as np
import torch

from tutorial import notebook
from tutorial.benchmarks import measure, replay
from tutorial.benchmarks.measure import Options, Recorder, Target
from tutorial.benchmarks.trees import Node, linked_tree

TITLE = "Insertion"
OURS, REFERENCE = "this notebook, one batch", "reference A's way, one by one"
EXPLANATION = """\
One decision of 20 arms yields 20 transitions. Each is rated by its own TD error and stored in a
memory that already holds 100,000. The notebook sends all 20 through the networks in one batch and
adds them to its arrays. Reference A sends each through the networks by itself, with a switch of
three networks to eval mode and back, and hangs it into a tree of linked nodes. Both have the
notebook's networks with its default settings, so the difference is the way and not the size.
One thread."""

ARMS = 20


def an_agent(definitions, capacity: int):
    """An agent with the default settings and a memory for so many transitions."""
    settings = definitions.make_hyperparameters("default", {"replay_capacity": capacity})
    return definitions.Agent(
        definitions.OBSERVATION_SCALE, replay.ACTION, ARMS, settings, np.random.default_rng(0)
    )


def ours(definitions, agent, new_transitions: np.ndarray):
    """Rate and store rows (20, 72) as the notebook does."""

    def call():
        agent.new_transitions = [new_transitions]
        definitions.store_new_transitions(agent)

    return call


def one_by_one(definitions, ddpg, root: Node, new_transitions: np.ndarray):
    """Rate and store rows (20, 72) one by one, as reference A does."""
    networks = (ddpg.critic, ddpg.target_critic, ddpg.target_actor)

    def call():
        for row in new_transitions:
            for network in networks:
                network.eval()
            batch = definitions.split_rows(
                torch.from_numpy(row[None]), replay.OBSERVATION, replay.ACTION
            )
            targets = definitions.td_targets(batch, ddpg.target_actor, ddpg.target_critic)
            error = definitions.td_error(batch, ddpg.critic, targets)  # with a graph, as in A
            for network in networks:
                network.train()
            priority = (abs(error.item()) + replay.EPSILON) ** replay.ALPHA
            root.attach(Node(row, priority))

    return call


def run(options: Options, recorder: Recorder) -> None:
    """Measure both in turn."""
    definitions = notebook.definitions()
    held = options.size(100_000, 2_000)
    rows, td_errors = replay.transitions(held)
    with measure.torch_threads(1):
        torch.manual_seed(0)
        agent = an_agent(definitions, options.size(1_000_000, 2_048))
        agent.replay.add(rows, td_errors)
        other = an_agent(definitions, 2_048).ddpg
        root = linked_tree(replay.to_priorities(td_errors), rows)
        new_transitions = rows[:ARMS].copy()
        calls = {
            OURS: ours(definitions, agent, new_transitions),
            REFERENCE: one_by_one(definitions, other, root, new_transitions),
        }
        recorder.put_seconds(measure.time_in_turn(calls, options))


def targets(measured) -> list[Target]:
    return [
        measure.at_least(
            "Store 20 transitions with TD-error priorities: at least 20 times as "
            "fast as one by one",
            measure.ratio(measured, REFERENCE, OURS),
            20.0,
        )
    ]
