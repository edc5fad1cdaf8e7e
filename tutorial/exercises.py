"""Checks of the notebook's exercises. Each prints whether the answer is right.

A function that returns `None` or `...`, as the notebook's gaps do, counts as not written yet. A
wrong answer is told the first case in which it differs. The likeliest mistakes are known: an answer
that differs as one of them does gets that mistake's hint. Any other gets a direction.
"""

from __future__ import annotations

import collections
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from reacher.columns import ANGULAR_VELOCITY, EARNINGS, FOREARM, GOAL
from reacher.episode import evaluate_policy
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from tutorial.paths import PROJECT

EXERCISES = (  # in the notebook's order, which numbers them
    "policy losses soft_update n_step step_down noise mirrored_critic noise_probe networks"
).split()
IN_USE = [name for name in EXERCISES if name not in ("policy", "noise_probe")]  # agents call them
# On six seeds, policies that look have at least 3.07 points, and others at most 2.44: the middle.
ENOUGH_POINTS = 2.75
TURNING_Z = ANGULAR_VELOCITY.stop - 1  # of a body: about z


def check(
    name: str,
    answer: Callable,
    right: Callable,
    cases: Mapping[str, Sequence],
    mistakes: Sequence[tuple[str, Callable]],
    direction: str,
    praise: str,
    idle: str = "",
) -> bool:
    """Print whether an answer is right, or the first case in which it differs, and a hint.

    Args:
        cases: arguments of an answer, by words for them.
        mistakes: hints, each with an answer that makes the mistake.
        direction: the hint for other mistakes.
        idle: what to add to the line about an answer that is still to be written.

    Returns:
        Whether it is right. If so, its solution gives way to it.
    """
    for case, given in cases.items():
        before, expected = repr(given), numbers(right(*given))
        try:
            found = answer(*given)
            if found is None or found is ...:
                needed = "The agents need it: until your lines are right, run the solution below."
                parts = f"{title(name)} is still to be written.", idle, needed * (name in IN_USE)
                return say(" ".join(filter(None, parts)))
            found = numbers(found)
        except Exception as error:
            return say(f"{title(name)}: for {case} {told_of(error)}.")
        told = f"the answer should be {shown(expected)}, and it is {shown(found)}"
        if repr(given) != before:
            told, hint = "your function changes what it is given", "the agent still needs it."
        elif alike(found, expected):
            continue
        else:
            if found.shape != expected.shape:
                told = f"the shape should be {expected.shape}, and it is {found.shape}"
            with np.errstate(all="ignore"):
                known = (x for x, other in mistakes if alike(found, numbers(other(*given))))
                hint = next(known, direction)
        return say(f"{title(name)}: for {case} {told}. Hint: {hint}")
    say(f"{title(name)} is right. {praise}")
    return True


def title(name: str) -> str:
    """What the notebook calls an exercise."""
    return f"Exercise {EXERCISES.index(name) + 1}"


def numbers(values: Any) -> np.ndarray:
    """An array of numbers or truth values; or TypeError, ValueError."""
    found = np.asarray(values.detach() if hasattr(values, "detach") else values)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"the answer should be numbers, and it is {values!r:.80}")
    return found


def alike(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether they are equal in shape, and in numbers as far as single precision tells them."""
    return found.shape == expected.shape and np.allclose(found, expected, 1e-5, 1e-7, True)


def shown(values: np.ndarray) -> Any:
    """Numbers with four decimals, or truth values as they are."""
    return (values if values.dtype == bool else values.astype(float).round(4)).tolist()


def told_of(error: Exception) -> str:
    """What a reader's function raised, and in which of its lines."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [x for x in frames if not x.filename.startswith(str(PROJECT))]
    where = f", in its line '{own[0].line}'" if own and own[0].line else ""
    return f"your function raised {type(error).__name__}: {str(error).rstrip('.')}{where}"


def say(text: str) -> bool:
    """Print, in lines that fit into a page, what is not right."""
    print(textwrap.fill(text, 88))
    return False


def check_policy(environment: Any, policy: Callable[[np.ndarray], np.ndarray]) -> bool:
    """A policy by hand that moves arms to their goals along both axes."""
    exercise = title("policy")
    seen = np.zeros((20, OBSERVATION_SIZE), np.float32)
    for row, column in enumerate((GOAL.start, GOAL.start + 1, FOREARM.start + TURNING_Z), 1):
        seen[row, column] = 0.5  # the goal's x, its height, and the forearm's turning about z
    try:
        found = policy(seen.copy())
        if found is None or found is ...:
            return say(f"{exercise} is still to be written.")
        score = float(evaluate_policy(environment, policy).mean())
        about_z = numbers(found).astype(float)[:, 1]
    except Exception as error:
        return say(f"{exercise}: {told_of(error)}.")
    if not about_z.any():
        return say(f"{exercise} is still to be written: your torque about z is always 0.")
    points = f"Your policy scores {score:.1f}"
    if score >= ENOUGH_POINTS:
        say(f"{exercise} is right. {points}. Random torques earn about 0.1.")
        return True
    x, height, turning = about_z[1:4] - about_z[0]  # what these add to the torque
    hints = {
        "your torque about z does not look where the goal is": x == height == 0,
        "your torque about z looks at the goal's height, along which it cannot move a hanging arm":
            x == 0,
        "your torque about z pushes the arm away from its goal": x < 0,
        "your torque about z feeds the swinging that it should damp": turning > 0,
        "compare your line with the one about x: an axis and signs differ": True,
    }  # fmt: skip
    hint = next(hint for hint, is_so in hints.items() if is_so)
    return say(f"{exercise}: {points}, and the exercise asks for {ENOUGH_POINTS}. Hint: {hint}.")


def check_losses(targets: Callable, actor_loss: Callable) -> bool:
    """Targets, and minus the mean value of the actor's actions."""
    Batch = collections.namedtuple(
        "Batch", "observations actions rewards discounts next_observations"
    )
    seen, following = torch.tensor([[5.0], [3.0]]), torch.tensor([[1.0], [2.0]])
    batch = Batch(seen, seen, torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.0]), following)
    gain, weight = torch.tensor([2.0, 1.0]).requires_grad_().unbind()

    def actor(observations: Any) -> Any:
        return gain * observations

    def critic(observations: Any, actions: Any) -> Any:
        return (weight * (observations + actions * observations))[:, 0]

    def flowing(b: Any, *_: Any, discounts: Any = batch.discounts, seen: Any = following) -> Any:
        return b.rewards + discounts * critic(seen, actor(seen))

    def loss(observations: Any, actor: Callable, critic: Callable) -> Any:
        return -critic(observations, actor(observations)).mean()

    still = torch.no_grad()(flowing)

    def asked(targets: Callable = still, loss: Callable = loss) -> Callable:
        return lambda part: part(targets, loss)

    def value(targets: Callable, _: Callable) -> Any:
        return targets(batch, actor, critic)

    def flows(*both: Callable) -> Any:
        return getattr(value(*both), "requires_grad", False)

    def cost(_: Callable, loss: Callable) -> Any:
        return loss(following, actor, critic)

    def slope(*both: Callable) -> Any:
        found = cost(*both)
        if not getattr(found, "requires_grad", False):
            return 0.0
        (slope,) = torch.autograd.grad(found, [gain], allow_unused=True)
        return 0.0 if slope is None else slope

    networks = "mu(s) = 2s and Q(s, a) = s + a s"
    numbers_of = "rewards 1, -1, discounts 0.5, 0, next observations 1, 2"
    cases: dict[str, Sequence] = {
        f"the targets of {numbers_of}, {networks},": [value],
        "whether a gradient flows through the targets,": [flows],
        f"the actor's loss on the observations 1, 2, {networks},": [cost],
        "the slope of the loss for the 2 in mu(s) = 2s, which a step descends,": [slope],
    }
    share = "where does the discount go? The batch has it, and 0 where nothing can follow."
    mistakes = [
        (share, asked(lambda *given: still(*given, discounts=1))),
        (share, asked(lambda *given: still(*given, discounts=0.97))),
        (
            "what follows begins at the next observations, and these are the first ones.",
            asked(lambda *given: still(*given, seen=seen)),
        ),
        ("a target stands still while the critic moves to it: torch.no_grad.", asked(flowing)),
        ("a step goes downhill, so the actor gets worse.", asked(loss=lambda *a: -loss(*a))),
        (
            "nothing flows back to the actor, so it never learns. Are its actions detached?",
            asked(loss=torch.no_grad()(loss)),
        ),
    ]
    direction = "critic(s, actor(s)) values the actor's action, in targets as in the loss."
    praise = "Descending your loss climbs the critic's hill."
    answer = asked(targets, actor_loss)
    return check("losses", answer, asked(), cases, mistakes, direction, praise)


def check_soft_update(soft_update: Callable) -> bool:
    """A soft update of a network, in place."""

    def by(update: Callable) -> Callable:
        """Both networks' parameters after this update of one, or None: nothing has moved."""

        def moved(old: list, new: list, tau: float) -> Any:
            both = [torch.nn.ParameterList(map(torch.tensor, side)) for side in (old, new)]
            update(*both, tau)
            after = [[parameter.item() for parameter in network] for network in both]
            return None if after == [old, new] else after

        return moved

    def each(change: Callable) -> Callable:
        """An update that sets each old parameter to what `change` makes of old, new and tau."""

        @torch.no_grad()
        def update(target: Any, online: Any, tau: float) -> None:
            for old, new in zip(target, online, strict=True):
                old.copy_(change(old, new, tau))

        return update

    right = each(torch.lerp)
    mistakes = [
        ("tau is how far to go, not how much to keep.", by(each(lambda o, n, t: n.lerp(o, t)))),
        ("this copies at once, and the target is to be slow.", by(each(lambda o, n, t: n))),
        ("what comes in has to replace something.", by(each(lambda o, n, t: o + t * n))),
        ("the online network moves instead.", by(lambda o, n, t: right(n, o, t))),
        (
            "the online network should stay as it is.",
            by(lambda o, n, t: (right(o, n, t), right(n, o, t))),
        ),
    ]
    direction = "each parameter goes the fraction tau of its way to the online network's."
    old, new = [2.0, 4.0], [1.0, -2.0]
    words = f"a target with the parameters {old}, an online network with {new} and tau = 0.25,"
    praise = "After 100 steps with tau = 0.01, 37% of the gap is left."
    cases, idle = {words: (old, new, 0.25)}, "Nothing has moved."
    return check(
        "soft_update", by(soft_update), by(right), cases, mistakes, direction, praise, idle
    )


def check_n_step(n_step_return: Callable) -> bool:
    """The discounted sum of a window's rewards, a list of arrays (arms,), for each arm."""

    def by(factor: Callable) -> Callable:
        """A sum with these factors of reward k of n."""

        def total(rewards: list, discount: float) -> Any:
            n = len(rewards)
            return sum(factor(discount, k, n) * reward for k, reward in enumerate(rewards))

        return total

    right = by(lambda gamma, k, n: gamma**k)
    mistakes = [
        ("each arm has a sum of its own.", lambda *given: right(*given).sum()),
        ("the first reward is not discounted.", by(lambda gamma, k, n: gamma ** (k + 1))),
        ("the first reward is the nearest one.", by(lambda gamma, k, n: gamma ** (n - 1 - k))),
        ("a reward counts less, the later it comes.", by(lambda gamma, k, n: 1)),
        ("each reward has a power of its own.", by(lambda gamma, k, n: gamma**n)),
        ("it is a sum and no mean.", by(lambda gamma, k, n: gamma**k / n)),
    ]
    rewards = [np.array(arms) for arms in ([1.0, 0.0], [2.0, 1.0], [4.0, -1.0])]
    cases = {
        f"the rewards {[*map(shown, given)]} of two arms and a discount of 0.5": (given, 0.5)
        for given in (rewards, rewards[:2], rewards[:1])  # an episode's end leaves shorter windows
    }
    direction = "the formula's k counts from 0 to n - 1, and n is how many rewards are given."
    praise = "The value of what follows comes behind it, with the factor gamma^n."
    return check("n_step", n_step_return, right, cases, mistakes, direction, praise)


def check_step_down(step_down: Callable) -> bool:
    """A step of many walks down a sum tree: nodes (k,), values (k,) to children and what is left.

    `step_down(tree, nodes, values)`: tree (2 * leaves,) has its root at 1, and the children of node
    i at 2i and 2i + 1; a value is from 0 to below the sum of its node.
    """

    def by(to_right: Callable, taken: Callable = lambda left, right: left) -> Callable:
        def step(tree: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> Any:
            left, right = tree[2 * nodes], tree[2 * nodes + 1]
            goes_right = to_right(values, left)
            return 2 * nodes + goes_right, values - goes_right * taken(left, right)

        return step

    right, to_right = by(np.greater_equal), np.greater_equal
    mistakes = [
        ("on the way to the right, the left sum is left behind.", by(to_right, lambda *_: 0)),
        ("what lies to the left is left behind.", by(to_right, lambda left, right: right)),
        ("a small number lies to the left.", by(np.less)),
        ("a share has its lower end and not its upper one.", by(np.greater)),
        ("first the children, then what is left.", lambda *given: right(*given)[::-1]),
    ]
    tree = np.array([0.0, 6.0, 4.0, 2.0, 3.0, 1.0, 0.0, 2.0])
    walks = ([1, 1, 1], [4.5, 0.5, 4.0]), ([3, 2, 3, 2], [0.5, 3.5, 0.0, 3.0])
    cases = {
        f"the leaves 3, 1, 0, 2, the nodes {nodes} and the numbers {values}":
            (tree.copy(), np.array(nodes), np.array(values))
        for nodes, values in walks
    }  # fmt: skip
    direction = "does the number fall into the left child's sum, or behind it?"
    praise = "A million leaves need twenty such steps."
    return check("step_down", step_down, right, cases, mistakes, direction, praise)


def check_noise(noise_matrix: Callable) -> bool:
    """Factorized noise (outputs, inputs) of two tensors, (inputs,) and (outputs,)."""

    def by(scale: Callable) -> Callable:
        return lambda *noise: np.outer(*(scale(np.asarray(one)) for one in reversed(noise)))

    right = by(lambda x: np.sign(x) * np.abs(x) ** 0.5)
    mistakes = [
        ("outputs are the rows, and inputs the columns.", lambda *given: right(*given).T),
        ("half of the noise is negative: where is the sign?", by(lambda x: np.abs(x) ** 0.5)),
        ("a negative number has no root. Its size has.", by(np.sqrt)),
        ("f takes a root.", by(lambda x: x)),
    ]
    noise = torch.tensor([4.0, -9.0, 1.0]), torch.tensor([1.0, -4.0])
    cases = {"noise of 4, -9, 1 for the inputs and of 1, -4 for the outputs": noise}
    direction = "apply f to both vectors. Then each output's number meets each input's."
    praise = "Five numbers made the noise of six weights."
    return check("noise", noise_matrix, right, cases, mistakes, direction, praise)


def check_mirrored_critic(critic_class: Any, mirrors: Any) -> bool:
    """An arm and its mirror images have one value; mirrors (images, 37): their signs."""
    weights = torch.arange(1.0, 1 + mirrors.shape[1])
    try:
        scale = np.ones(OBSERVATION_SIZE, np.float32)
        critic = critic_class(scale, lambda inputs: (inputs * weights).sum(1, True))
    except Exception as error:
        return say(f"{title('mirrored_critic')}: {told_of(error)}.")

    def plain(observations: Any, actions: Any) -> Any:
        return critic_class.__mro__[1].forward(critic, observations, actions)

    def right(observations: Any, actions: Any) -> Any:
        return plain(signs * observations, action_signs * actions)

    sizes = OBSERVATION_SIZE, ACTION_SIZE
    arm = torch.linspace(-1, 1, mirrors.shape[1])  # of both signs, its goal at x >= 0 and z >= 0
    signs, action_signs = mirrors.split(sizes, dim=1)
    mistakes = [
        ("a torque points the other way in a mirror, too.", lambda o, a: plain(signs * o, a)),
        ("the arm has to be reflected, too.", lambda o, a: plain(o, action_signs * a)),
        ("the size of a number forgets its side.", lambda o, a: plain(o.abs(), a.abs())),
    ]
    told = "the inputs are right. And has a value got a side?"
    mistakes += [(told, lambda *both, side=side: side * right(*both)) for side in mirrors.T]
    direction = "compare the actor: what goes in reflected, and does a critic need its last step?"
    praise = "Whatever it learns on one side now holds on the other."
    images = (mirrors * arm).split(sizes, dim=1)
    cases = {"an arm and its mirror images, with mirrored torques,": images}
    return check("mirrored_critic", critic, right, cases, mistakes, direction, praise)


def check_noise_probe(probe: Callable, sound: Any, one_noise: Any) -> bool:
    """Whether arms that see the same thing act differently; two agents."""

    def judge(*agents: Any) -> list | None:
        found = [probe(agent) for agent in agents]
        return None if any(one is None or one is ... for one in found) else found

    mistakes = [
        (
            "it finds noise in both. Arms that see different things act differently without any "
            "noise, and one arm does so from call to call.",
            lambda *_: [True, True],
        ),
        (
            "it finds noise in neither. Compare the arms with each other, in one call.",
            lambda *_: [False, False],
        ),
        ("it is the wrong way round.", lambda *_: [False, True]),
    ]
    direction = "the answer for an agent is True or False."
    cases = {"a sound agent and the one with one noise for all arms": (sound, one_noise)}
    praise = "It caught what no curve showed."
    right = lambda *_: [True, False]  # noqa: E731
    return check("noise_probe", judge, right, cases, mistakes, direction, praise)


def check_networks(networks: Callable, settings: Any) -> bool:
    """An actor that is blind to the earnings alone, and a critic that sees all."""

    def sees() -> list | None:
        """Whether the actor sees the earnings, and the critic; and whether both see all else."""
        actor, critic = networks(settings)
        nothing, one_each = torch.zeros(1, OBSERVATION_SIZE), torch.eye(OBSERVATION_SIZE)
        action = actor(nothing).detach()
        answers = actor, lambda seen: critic(seen, action)[:, None]
        by_actor, by_critic = (
            torch.cat([(one(seen[None]) != one(nothing)).any(1) for seen in one_each]).numpy()
            for one in answers
        )
        others = np.delete(by_actor, EARNINGS), np.delete(by_critic, EARNINGS)
        is_same = np.array_equal(*others) and bool(by_critic.any())
        answer = [bool(by_actor[EARNINGS]), bool(by_critic[EARNINGS]), is_same]
        return None if all(answer) else answer

    mistakes = [
        ("it is the actor that should not see them.", lambda: [True, False, True]),
        ("the critic should still see them.", lambda: [False, False, True]),
        ("the actor needs all the rest.", lambda: [False, True, False]),
    ]
    direction = "a network does not see a number that is multiplied by 0."
    cases = {"whether the actor and the critic see the earnings, and both the rest,": ()}
    praise, idle = "Only the critic sees the earnings.", "Both see everything."
    right = lambda: [False, True, True]  # noqa: E731
    return check("networks", sees, right, cases, mistakes, direction, praise, idle)
