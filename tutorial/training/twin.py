"""The arithmetic of the notebook's learner in JAX, under the names that it has there.

All of it is pure functions of arrays. A network's parameters are `p`, a dictionary with PyTorch's
names. Between two steps they lie in one vector: a call that takes a few vectors starts sooner than
one that takes a hundred arrays, and Adam's step on a vector is one operation. Matrices have the
shape (inputs, outputs), unlike PyTorch's, since most products of a step are then faster.
`compiled` imports this module once it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam, PyTorch's defaults
NORM_EPSILON = 1e-5  # of layer normalisation, likewise
CLIP_EPSILON = 1e-6  # of gradient clipping, likewise

Parameters = Mapping[str, jax.Array]
Shapes = Mapping[str, tuple[int, ...]]


class Batch(NamedTuple):
    """Transitions; arrays share their first axis of size batch."""

    observations: jax.Array  # (batch, observation_size)
    actions: jax.Array  # (batch, action_size)
    returns: jax.Array  # (batch,) sum of gamma^k r
    discounts: jax.Array  # (batch,) gamma^n, or 0 after a terminal state
    next_observations: jax.Array  # (batch, observation_size)


def split_rows(rows, observation_size: int, action_size: int) -> Batch:
    """Rows (batch, 2 * observation_size + action_size + 2) of the replay as a Batch."""
    reward = observation_size + action_size  # the column of the return
    return Batch(
        rows[:, :observation_size],
        rows[:, observation_size:reward],
        rows[:, reward],
        rows[:, reward + 1],
        rows[:, reward + 2 :],
    )


class Learned(NamedTuple):
    """All numbers of the actor or of the critic: vectors of one length."""

    weights: jax.Array
    target: jax.Array  # weights of the target network
    average: jax.Array  # Adam's, of the gradients
    square: jax.Array  # Adam's, of their squares


# ------------------------------------------------------------------------------------------ vectors


def views(vector, shapes: Shapes) -> Parameters:
    """The parameters that lie one after the other in a vector."""
    found, start = {}, 0
    for name, shape in shapes.items():
        end = start + math.prod(shape)
        found[name] = vector[start:end].reshape(shape)
        start = end
    return found


def flat(p: Parameters, shapes: Shapes):
    """The opposite: parameters as one vector."""
    return jnp.concatenate([p[name].reshape(-1) for name in shapes])


def adam(network: Learned, gradient, rates, clip: float | None, weight_decay: float) -> Learned:
    """One step of Adam (Kingma and Ba, 2015, algorithm 1) with the operations of PyTorch's."""
    step_size, correction = rates
    if clip is not None:
        norm = jnp.sqrt(jnp.dot(gradient, gradient))
        gradient = gradient * jnp.minimum(clip / (norm + CLIP_EPSILON), 1)
    if weight_decay:
        gradient = gradient + weight_decay * network.weights
    average = network.average + (1 - BETA1) * (gradient - network.average)
    square = BETA2 * network.square + (1 - BETA2) * gradient**2
    change = step_size * average / (jnp.sqrt(square) / correction + EPSILON)
    return Learned(network.weights - change, network.target, average, square)


def soft_update(network: Learned, tau: float) -> Learned:
    """target <- tau weights + (1 - tau) target."""
    target = network.target + tau * (network.weights - network.target)
    return network._replace(target=target)


# ------------------------------------------------------------------------------------- the networks


def linear(p: Parameters, name: str, x, epsilon=None):
    """(batch, inputs) to (batch, outputs); noisy with epsilon (1 or batch, inputs + outputs)."""
    weight, bias = p[f"{name}.weight"], p[f"{name}.bias"]
    if epsilon is None:
        return x @ weight + bias
    sigma_weight, sigma_bias = p[f"{name}.sigma_weight"], p[f"{name}.sigma_bias"]
    scaled = jnp.copysign(jnp.sqrt(jnp.abs(epsilon)), epsilon)  # f
    noise_in, noise_out = jnp.split(scaled, [x.shape[1]], axis=1)
    if len(scaled) == 1:  # one matrix of noise for all rows
        noisy_weight = weight + sigma_weight * noise_in.T * noise_out
        return x @ noisy_weight + (bias + sigma_bias * noise_out[0])
    return x @ weight + bias + noise_out * ((x * noise_in) @ sigma_weight + sigma_bias)


def layer_norm(p: Parameters, name: str, x):
    """Rows of x (batch, units) to mean 0 and variance 1, then scaled and moved."""
    # Means as matrix products: a sum in a fixed order is one addition after the other.
    mean = jnp.full((x.shape[1], 1), 1 / x.shape[1], x.dtype)
    centred = x - x @ mean
    variance = centred**2 @ mean
    normal = centred * jax.lax.rsqrt(variance + NORM_EPSILON)
    return normal * p[f"{name}.weight"] + p[f"{name}.bias"]


def block(p: Parameters, name: str, x, slope: float, epsilon=None):
    """Linear layer, normalisation where there is one, activation."""
    x = linear(p, f"{name}.0", x, epsilon)
    if f"{name}.1.weight" in p:
        x = layer_norm(p, f"{name}.1", x)
    return jnp.where(x > 0, x, slope * x)


class Twin:
    """Actor and critic, their losses and the gradient step, for one kind of settings.

    Args:
        settings: the notebook's hyperparameters.
        sizes: of an observation and of an action.
        shapes: of the parameters of "actor" and "critic" by name, in the order of their vectors.
        scales: what the inputs of "actor" and "critic" are multiplied by.
    """

    def __init__(
        self,
        settings: Any,
        sizes: tuple[int, int],
        shapes: Mapping[str, Shapes],
        scales: Mapping[str, np.ndarray],
    ):
        self.settings, self.sizes, self.shapes, self.scales = settings, sizes, shapes, scales

    def actor(self, p: Parameters, observations, noise=None):
        """mu_theta: (batch, observation_size) to (batch, action_size); noise (1 or batch, all)."""
        x, last = observations * self.scales["actor"], len(self.settings.actor_hidden) + 1
        for k in range(1, last + 1):
            name = f"layers.{k}" if k == last else f"layers.{k}.0"
            epsilon = None
            if noise is not None and f"{name}.sigma_bias" in p:  # this layer's columns
                size = sum(p[f"{name}.weight"].shape)
                epsilon, noise = noise[:, :size], noise[:, size:]
            if k == last:
                return jnp.tanh(linear(p, name, x, epsilon))
            x = block(p, f"layers.{k}", x, self.settings.negative_slope, epsilon)

    def critic(self, p: Parameters, observations, actions):
        """Q_phi: (batch, observation_size) and (batch, action_size) to values (batch,)."""
        action_layer, joined = self.settings.critic_action_layer, [observations, actions]
        x = observations if action_layer > 1 else jnp.concatenate(joined, axis=1)
        x = x * self.scales["critic"]
        for k in range(1, len(self.settings.critic_hidden) + 1):
            if 1 < k == action_layer:
                x = jnp.concatenate([x, actions], axis=1)
            x = block(p, f"blocks.{k - 1}", x, self.settings.negative_slope)
        return linear(p, "output", x)[:, 0]  # (batch, 1) to (batch,)

    # ------------------------------------------------------------------------------ losses

    def td_targets(self, batch: Batch, target_actor: Parameters, target_critic: Parameters):
        """Targets y (batch,): returns + gamma^n Q_target(s', mu_target(s')). DDPG, algorithm 1."""
        next_actions = self.actor(target_actor, batch.next_observations)
        values = self.critic(target_critic, batch.next_observations, next_actions)
        return batch.returns + batch.discounts * values

    def td_error(self, batch: Batch, critic: Parameters, targets):
        """delta = y - Q(s, a), shape (batch,)."""
        return targets - self.critic(critic, batch.observations, batch.actions)

    def critic_loss(self, critic: Parameters, batch: Batch, weights, targets):
        """Mean of w delta^2, and delta."""
        errors = self.td_error(batch, critic, targets)
        return (weights * errors**2).mean(), errors

    def actor_loss(self, actor: Parameters, observations, critic: Parameters, noise):
        """- mean of Q(s, mu(s)), with noise in the actor's weights."""
        return -self.critic(critic, observations, self.actor(actor, observations, noise)).mean()

    # --------------------------------------------------------------------------- the learner

    def act(self, actor, observations, noise=None):
        """Actions of rows (k, observation_size), with a row of noise for each, or without."""
        return self.actor(views(actor, self.shapes["actor"]), observations, noise)

    def td_errors(self, critic, target_critic, target_actor, rows):
        """TD errors (k,) of transitions (k, width)."""
        batch = split_rows(rows, *self.sizes)
        critic, target_critic = (
            views(vector, self.shapes["critic"]) for vector in (critic, target_critic)
        )
        targets = self.td_targets(batch, views(target_actor, self.shapes["actor"]), target_critic)
        return self.td_error(batch, critic, targets)

    def learn(self, critic: Learned, actor: Learned, rows, weights, noise, rates):
        """One gradient step of the critic, and of the actor unless noise is None.

        Args:
            rows, weights: transitions (batch, width) and their importance weights (batch,).
            noise: of the actor's loss, (1, noise_size), which is empty without noisy layers.
            rates: of Adam, (2, 2): of critic and actor the learning rate / (1 - beta1^t), and
                sqrt(1 - beta2^t).

        Returns:
            Both networks, and one vector (batch + 2,): TD errors, and both losses.
        """
        settings, shapes = self.settings, self.shapes
        batch = split_rows(rows, *self.sizes)
        targets = self.td_targets(
            batch, views(actor.target, shapes["actor"]), views(critic.target, shapes["critic"])
        )
        (loss_of_critic, errors), gradients = jax.value_and_grad(self.critic_loss, has_aux=True)(
            views(critic.weights, shapes["critic"]), batch, weights, targets
        )
        critic = adam(
            critic,
            flat(gradients, shapes["critic"]),
            rates[0],
            settings.critic_gradient_clip,
            settings.weight_decay,
        )

        loss_of_actor = jnp.zeros_like(loss_of_critic)
        if noise is not None:
            loss_of_actor, gradients = jax.value_and_grad(self.actor_loss)(
                views(actor.weights, shapes["actor"]),
                batch.observations,
                views(critic.weights, shapes["critic"]),
                noise,
            )
            actor = adam(
                actor,
                flat(gradients, shapes["actor"]),
                rates[1],
                settings.actor_gradient_clip,
                settings.weight_decay,
            )

        critic, actor = soft_update(critic, settings.tau), soft_update(actor, settings.tau)
        return critic, actor, jnp.append(errors, jnp.stack([loss_of_critic, loss_of_actor]))

    def learn_phase(self, critic: Learned, actor: Learned, rows, weights, noise, rates, with_actor):
        """Several gradient steps: arguments as in `learn`, with a first axis more, of the steps.

        Args: with_actor (steps,) says in which the actor learns.
        """

        def step(networks, inputs):
            *data, noise, rates, with_actor = inputs
            critic, actor, found = jax.lax.cond(
                with_actor,
                lambda: self.learn(*networks, *data, noise, rates),
                lambda: self.learn(*networks, *data, None, rates),
            )
            return (critic, actor), found

        (critic, actor), found = jax.lax.scan(
            step, (critic, actor), (rows, weights, noise, rates, with_actor)
        )
        return critic, actor, found
