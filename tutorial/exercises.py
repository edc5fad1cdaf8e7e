"""Checks of the notebook's exercises. Each prints whether the answer is right.

A function that returns `None` or `...`, as the notebook's gaps do, counts as not written yet. A
wrong answer gets the first case in which it differs, and a hint.
"""

from __future__ import annotations

import textwrap
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from reacher.columns import EARNINGS
from reacher.episode import evaluate_policy
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE

IN_USE = 2, 3, 4, 6  # exercises whose answers agents call
Case = tuple[Sequence, Any, str]  # arguments of an answer, what it should return, and words for it


def check(
    number: int,
    answer: Callable,
    cases: Iterable[Case],
    hint: str,
    praise: str,
    idle: str = "",
) -> bool:
    """Print whether an answer is right, or the first case in which it differs, and the hint.

    Returns: whether it is right. If so, its solution gives way to it.
    """
    for given, expected, case in cases:
        found = answer(*given)
        if found is None or found is ...:
            needed = "The agents need it: until your lines are right, run the solution below."
            told = f"Exercise {number} is still to be written.", idle, needed * (number in IN_USE)
            say(" ".join(filter(None, told)))
            return False
        found, expected = np.asarray(found), np.asarray(expected)
        # Single precision is enough.
        if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-5, atol=1e-7):
            say(
                f"Exercise {number}: for {case} the answer should be "
                f"{shown(expected)}, and it is {shown(found)}." + (f" Hint: {hint}" if hint else "")
            )
            return False
    say(f"Exercise {number} is right. {praise}")
    return True


def shown(values: np.ndarray) -> Any:
    """Numbers with four decimals, or truth values as they are."""
    return (values if values.dtype == bool else values.astype(float).round(4)).tolist()


def say(text: str) -> None:
    """Print, in lines that fit into a page."""
    print(textwrap.fill(text, 88))


def check_policy(environment: Any, policy: Callable[[np.ndarray], np.ndarray]) -> None:
    """Exercise 1: a policy by hand that earns at least 1 point, ten times as much as chance."""
    shape = np.shape(policy(np.zeros((20, OBSERVATION_SIZE), np.float32)))
    if shape != (20, ACTION_SIZE):
        say(
            f"Exercise 1: for observations of the shape (20, {OBSERVATION_SIZE}) your policy "
            f"returns the shape {shape}, and it should be (20, {ACTION_SIZE}): an arm has "
            f"{ACTION_SIZE} torques."
        )
        return
    score = float(evaluate_policy(environment, policy).mean())
    if score < 1.0:
        seen = np.random.default_rng(0).standard_normal((20, OBSERVATION_SIZE)).astype(np.float32)
        hint = (
            " Hint: to_goal[:, 0] is the pull along x. Try it with either sign, and subtract the "
            "damping of its turning."
        )
        is_written = np.any(policy(seen)[:, 1])  # a torque about z
        say(
            f"Your policy scores {score:.2f}, and the exercise asks for 1."
            + (hint if is_written else "")
        )
        return
    say(f"Exercise 1 is right. Your policy scores {score:.2f}. Random torques earn about 0.1.")


def check_losses(targets: Callable, actor_loss: Callable) -> bool:
    """Exercise 2: targets, and minus the mean value of the actor's actions."""
    import torch

    batch = namedtuple("batch", "observations actions rewards discounts next_observations")
    seen, following = torch.tensor([[5.0], [3.0]]), torch.tensor([[1.0], [2.0]])
    given = batch(seen, seen, torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.0]), following)
    weight = torch.ones(1, requires_grad=True)

    def actor(observations: Any) -> Any:
        return 2 * observations

    def critic(observations: Any, actions: Any) -> Any:
        return (weight * (observations + actions * observations))[:, 0]

    def answer(part: str, *arguments: Any) -> Any:
        found = (actor_loss if part == "loss" else targets)(*arguments, actor, critic)
        if found is None or found is ...:
            return None
        return found.requires_grad if part == "flows" else found.detach()

    networks = "mu(s) = 2s and Q(s, a) = s + a s"
    cases = [
        (
            ("targets", given),
            [2.5, -1.0],
            f"the targets of rewards 1, -1, discounts 0.5, 0, next observations 1, 2, {networks},",
        ),
        (("flows", given), False, "whether a gradient flows through the targets,"),
        (("loss", following), -6.5, f"the actor's loss on the observations 1, 2, {networks},"),
    ]
    hint = (
        "the actor chooses the next action, the critic values it, under torch.no_grad. The loss is "
        "the critic's mean value of the actor's actions, with a sign that makes it climb."
    )
    return check(2, answer, cases, hint, "Descending your loss climbs the critic's hill.")


def check_soft_update(soft_update: Callable) -> bool:
    """Exercise 3: a soft update of a network, in place."""
    import torch

    def moved(*given: Any) -> Any:
        both = [torch.nn.ParameterList(map(torch.tensor, numbers)) for numbers in given[:2]]
        soft_update(*both, given[2])
        after = [[parameter.item() for parameter in network] for network in both]
        return None if after == [*given[:2]] else after

    hint = "each parameter of the target is to change itself, and the online network stays."
    old, new = [0.0, 4.0], [1.0, 0.0]
    words = f"a target with the parameters {old}, an online network with {new} and tau = 0.25,"
    cases = [((old, new, 0.25), [[0.25, 3.0], new], words)]
    praise = "After 100 steps with tau = 0.01, 37% of the gap is left."
    return check(3, moved, cases, hint, praise, "Nothing has moved.")


def check_mirrored_critic(critic_class: Any, mirrors: Any) -> bool:
    """Exercise 4: an arm and its mirror images have one value; mirrors: their signs."""
    import torch

    plain, weights = critic_class.__mro__[1], torch.arange(1.0, 1 + mirrors.shape[1])
    arm = torch.linspace(0.1, 1, mirrors.shape[1])  # its goal is at x >= 0 and z >= 0
    images = (mirrors * arm).split([OBSERVATION_SIZE, ACTION_SIZE], dim=1)
    critic = critic_class(
        np.ones(OBSERVATION_SIZE, np.float32), lambda x: (x * weights).sum(1, True)
    )
    expected = plain.forward(critic, *(part[:1] for part in images)).expand(len(mirrors))
    hint = (
        "whatever goes in has to be reflected, the torques, too. What comes out is a value, and "
        "has no side."
    )
    cases = [(images, expected, "an arm and its three images, with mirrored torques,")]
    return check(4, critic, cases, hint, "Whatever it learns on one side now holds on the other.")


def check_noise_probe(probe: Callable, sound: Any, one_noise: Any) -> None:
    """Exercise 5: whether arms that see the same thing act differently."""
    hint = "give agent.act observations that are all alike, and compare the rows of its actions."
    cases = [
        ((sound,), True, "the agent of section 6"),
        ((one_noise,), False, "the agent with one noise for all arms"),
    ]
    check(5, probe, cases, hint, "It caught what no curve showed.")


def check_networks(networks: Callable) -> bool:
    """Exercise 6: an actor that is blind to the earnings, and a critic that sees them."""
    import torch

    def sees() -> tuple[bool, ...] | None:
        actor, critic = networks()
        shown, hidden = torch.zeros(1, OBSERVATION_SIZE), torch.zeros(1, OBSERVATION_SIZE)
        shown[:, EARNINGS] = 1
        action = actor(hidden)
        pairs = (actor(shown), action), (critic(shown, action), critic(hidden, action))
        answer = tuple(not torch.equal(*pair) for pair in pairs)
        return None if answer == (True, True) else answer

    hint = "multiply the earnings by 0 in the actor, and leave the critic as it is."
    words = "whether actor and critic see the earnings,"
    cases = [((), (False, True), words)]
    return check(6, sees, cases, hint, "Only the critic sees the earnings.")


def check_n_step(n_step_return: Callable) -> None:
    """Exercise 7: the n-step target."""
    hint = "the first reward has the factor 1, the last one gamma^(n - 1), and the value gamma^n."
    words = "the rewards {}, a value of {} and a gamma of {}"
    cases = []
    for given in ([1.0, 2.0, 3.0], 8.0, 0.5), ([0.4], 10.0, 0.97), ([0.0] * 5, 1.0, 0.9):
        rewards, value, gamma = given
        expected = np.polynomial.polynomial.polyval(gamma, [*rewards, value])
        cases.append((given, expected, words.format(*given)))
    check(7, n_step_return, cases, hint, "With one reward it is a target of exercise 2.")


def check_weights(weights: Callable) -> None:
    """Exercise 8: importance weights, divided by the largest of the batch."""
    hint = (
        "N cancels when you divide by the largest weight, which belongs to the smallest "
        "probability."
    )
    cases = []
    for numbers, beta in ([0.1, 0.2, 0.4], 1.0), ([0.1, 0.2, 0.4], 0.5), ([0.3, 0.3], 0.7):
        probabilities = np.array(numbers)
        expected = (probabilities / min(numbers)) ** -beta
        words = f"the probabilities {numbers} and a beta of {beta}"
        cases.append(((probabilities, beta), expected, words))
    praise = "Equal probabilities have weights of 1, so then nothing is corrected."
    check(8, weights, cases, hint, praise)


def check_noise(noise_matrix: Callable) -> None:
    """Exercise 9: factorized noise, (outputs, inputs)."""
    hint = "f keeps the sign and takes the root of the size. Each output's f meets each input's f."
    noise_in, noise_out = np.array([4.0, -9.0, 1.0]), np.array([1.0, -4.0])
    expected = np.outer([1.0, -2.0], [2.0, -3.0, 1.0])
    words = "noise of 4, -9, 1 for the inputs and of 1, -4 for the outputs"
    cases = [((noise_in, noise_out), expected, words)]
    check(9, noise_matrix, cases, hint, "Five numbers made the noise of six weights.")
