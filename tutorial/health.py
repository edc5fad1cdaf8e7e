"""Numbers are watched: one that is not a number, and everything learned from it is lost."""

from __future__ import annotations

import numpy as np

from tapejit import compiled
from tutorial.protocols import Agent

LARGEST_OBSERVATION = (
    1e15  # squares of it, and Adam's of its gradients, are below 3e38, float32's end
)


def require_observations(observations: np.ndarray) -> None:
    """Raise FloatingPointError if an observation is NaN, infinite, or too large to learn from.

    A normalization squares what a layer makes of an observation. Where that overflows single
    precision, one engine sees NaN and another one 0, so neither is let go on.

    Args:
        observations: (arms, observation_size), float32.
    """
    require_finite("an observation", observations)
    too_large = np.abs(observations) > LARGEST_OBSERVATION
    if too_large.any():
        arm, number = np.argwhere(too_large)[0]
        raise FloatingPointError(
            f"observation {number} of arm {arm} is {observations[arm, number]:g}, and its size "
            f"must not exceed {LARGEST_OBSERVATION:g}: the networks compute in single precision. "
            "Scale what the environment observes, such as by "
            "gymnasium.wrappers.RescaleObservation or NormalizeObservation, or find out why it "
            "grows"
        )


def require_finite(what: str, values: np.ndarray) -> None:
    """Raise FloatingPointError if one of the values is NaN or infinite."""
    finite = np.isfinite(values)
    if not finite.all():
        bad = np.argwhere(~finite)
        place = ", ".join(map(str, bad[0]))
        raise FloatingPointError(
            f"{what} is not finite: {np.asarray(values)[tuple(bad[0])]} at "
            f"[{place}], {len(bad)} of {np.size(values)} in all"
        )


def require_healthy(agent: Agent, losses: np.ndarray) -> None:
    """Check the losses of an update phase, and the weights after it.

    Once a gradient is infinite or NaN, Adam makes weights NaN in the same step, and the next loss
    with them; so this costs next to nothing, and the search for the culprit waits until there is
    one.

    Raises:
        FloatingPointError: names the tensor that is not finite: a gradient, a weight, a loss.
    """
    if np.isfinite(losses).all() and agent.learner.is_finite():
        return
    ddpg = agent.learner.synced()
    networks = compiled.networks(ddpg)
    for name in sorted(networks, key=lambda name: "actor" in name):  # which learn from critics
        network = networks[name]
        for path, weight in network.named_parameters():
            if weight.grad is not None:
                require_finite(f"the gradient of {path} of the {name}", weight.grad.numpy())
        for path, tensor in network.state_dict().items():  # weights and running statistics
            require_finite(f"{path} of the {name}", tensor.numpy())
    require_finite("the loss of critic or actor", losses)
