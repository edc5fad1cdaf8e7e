"""Physics, task and networks of the page, in Node beside Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from reacher.episode import play_episode, random_torques
from reacher.task import World
from reacher_page.actor import network_of, read_network
from reacher_page.page import script

PROJECT = Path(__file__).parents[3]

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(not NODE, reason="no Node")
KEPT = PROJECT / "checkpoints" / "whole" / "seed0"


def node(statements, *names, **given):
    """What statements leave in `result`, after these scripts of the page; they see `given`."""
    program = (
        '"use strict"; const given = JSON.parse(require("fs").readFileSync(0)); let result;'
        f"{script(*names)}\n{statements}\nconsole.log(JSON.stringify(result));"
    )
    given = json.dumps(given, default=np.ndarray.tolist)
    done = subprocess.run([NODE, "-e", program], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def numbers_of(network):
    return {name: value.numpy() for name, value in network.state_dict().items()}


def state_of(task):
    """Of each arm: joint angles, velocities of its bodies, the goal's angle."""
    arms = task.num_agents
    return [
        task.physics.data.qpos.reshape(arms, 4).copy(),
        task.physics.velocity.reshape(arms, 2, 6).copy(),
        task._goal_angle.copy(),
    ]


@pytest.mark.parametrize("size, speed", [(5, 1), (8, 3)])
def test_one_decision_from_2000_states(size, speed):
    """To 1e-12: rounding of some hundred operations. Rewards and observations come with it."""
    task, generator = World(20, 7), np.random.default_rng(0)
    actor = read_network(KEPT / "actor_best.safetensors").act
    task.set_parameters({"goal_size": size, "goal_speed": speed})
    seen, states, chosen, reached, rewards, observed = task.reset(), [], [], [], [], []
    for decision in range(100):  # near its goals, and flung about beyond the cap on velocities
        actions = actor(seen) if decision < 50 else generator.standard_normal((20, 4)) * 2
        states.append(state_of(task))
        seen, reward, _ = task.step(actions)
        chosen.append(actions)
        reached.append(state_of(task))
        rewards.append(reward)
        observed.append(seen)
    joints, velocities, angles = (np.concatenate(part) for part in zip(*states, strict=True))
    expected = [np.concatenate(part) for part in zip(*reached, strict=True)]
    program = """
        result = given.joints.map((joints, k) => {
            const world = { ...TRAINED_WORLD, ...given.world };
            const arm = new Arm(given.angles[k], given.speeds[k % 20] / world.speed);
            Object.assign(arm, { joints, velocity: given.velocities[k] });
            arm.moveBodies();
            let reward = 0;
            for (let i = 0; i < 4; i++) reward += arm.live(given.actions[k], world);
            return [arm.joints, arm.velocity, arm.angle, reward, Array.from(arm.observe(world))];
        });"""
    given = {"joints": joints, "velocities": velocities, "angles": angles}
    given |= {"speeds": task._goal_speed, "actions": np.concatenate(chosen)}
    given["world"] = {"size": size, "speed": speed}
    found = node(program, "physics.js", "networks.js", **given)
    *bodies_and_goals, paid, seen = zip(*found, strict=True)
    for mine, theirs in zip(bodies_and_goals, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(paid, np.concatenate(rewards), rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen, np.concatenate(observed), rtol=1e-6, atol=1e-6)  # float32
    assert 0 < np.concatenate(rewards).mean() < 0.04  # both kinds are among them


@pytest.mark.parametrize(
    "networks, units",
    [("noisy_networks", 128), ("mirrored_networks", 20), ("whole_networks", 128)],
)
def test_actor_and_critic_are_the_notebooks(notebook, networks, units):
    """In JavaScript, and the actor in NumPy too: to 1e-5 of torques up to 1 and of values of some
    units, in single precision, whose sums depend on their order."""
    torch.manual_seed(1)
    settings = notebook.Hyperparameters(hidden_units=units)
    actor, critic = getattr(notebook, networks)(settings)
    for part in (*actor.parameters(), *critic.parameters()):
        part.data += 0.1 * torch.randn_like(part)  # layer normalization begins with 1 and 0
    episode = play_episode(random_torques(0), 20, 0, 20)
    seen = torch.from_numpy(episode.observations.reshape(-1, 33))
    actions = torch.rand(len(seen), 4) * 2 - 1
    mine = [network_of(numbers_of(each), "the network") for each in (actor, critic)]
    with torch.no_grad():
        expected = actor(seen).numpy(), critic(seen, actions).numpy()
    program = """
        const actor = network(given.actor), critic = network(given.critic);
        result = [given.seen.map((row) => Array.from(forward(actor, row))),
                  given.seen.map((row, k) => forward(critic, row, given.actions[k])[0])];"""
    given = {"actor": mine[0].packed(), "critic": mine[1].packed(), "seen": seen.numpy()}
    found = node(program, "networks.js", **given, actions=actions.numpy())
    assert np.ptp(expected[0]) > 0.1 and np.ptp(expected[1]) > 0.1
    for values, theirs in zip(found, expected, strict=True):
        assert np.abs(np.array(values) - theirs).max() < 1e-5 * max(1, np.abs(theirs).max())
    np.testing.assert_allclose(mine[0].act(seen.numpy()), expected[0], atol=1e-5)
