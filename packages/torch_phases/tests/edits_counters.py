"""Edits with something besides tensors that a step changes, draws, reads or prints."""

import itertools
import os
import random
import time

import numpy as np
import torch
from learner import DDPG, descend, soft_update, split_rows

COUNT, NUMBERS, ARRAY = {"n": 0}, itertools.count(1), np.zeros(1, int)
START, TOTAL, SEEN_BY_HOOK = time.time(), 0, []


class Told(DDPG):
    """Left to PyTorch, with a line."""

    outcome = "torch"

    def hard_update(self, count):
        if count % 7 == 0:
            soft_update(self.target_critic, self.critic, 1.0)


class CounterInAGlobalDict(Told):
    line = (
        'learn changes COUNT, which is no tensor, in update_targets (COUNT["n"] += 1): '
        "keep it in a tensor of the learner and write into that, or outside of the method"
    )

    def update_targets(self):
        COUNT["n"] += 1
        self.hard_update(COUNT["n"])


class CountOfItertools(Told):
    def update_targets(self):
        self.hard_update(next(NUMBERS))


class Clock:
    ticks = 0

    def tick(self):
        self.ticks += 1
        return self.ticks


class CounterInAnObjectOfTheLearner(Told):
    def begin(self):
        self.clock = Clock()

    def update_targets(self):
        self.hard_update(self.clock.tick())


class CounterInAClosure(Told):
    def begin(self):
        n = 0

        def tick():
            nonlocal n
            n += 1
            return n

        self.tick = tick

    def update_targets(self):
        self.hard_update(self.tick())


class CounterInAnArray(Told):
    def update_targets(self):
        ARRAY[0] += 1
        self.hard_update(ARRAY[0])


def step_of(learner):
    step_of.n = getattr(step_of, "n", 0) + 1
    learner.hard_update(step_of.n)


class CounterAsAnAttributeOfAFunction(Told):
    def update_targets(self):
        step_of(self)


class GlobalCounter(Told):
    def update_targets(self):
        global TOTAL
        TOTAL += 1
        self.hard_update(TOTAL)


class RandomNumbersOfPython(Told):
    def update_targets(self):
        if random.random() < 0.8:
            soft_update(self.target_actor, self.actor, 0.5)


class RandomNumbersOfNumPy(Told):
    line = (
        "learn computes with NumPy, in update_targets (if np.random.rand() < 0.8:): use PyTorch, "
        "or do so outside, and give the method what comes out as an argument"
    )

    def update_targets(self):
        if np.random.rand() < 0.8:
            soft_update(self.target_actor, self.actor, 0.5)


class AGeneratorOfTorch(Told):
    def begin(self):
        self.chance = torch.Generator().manual_seed(0)

    def learn(self, rows, weights):
        return super().learn(rows + 0.1 * torch.randn(rows.shape, generator=self.chance), weights)


class AScheduleInsideOfTheLearner(Told):
    def begin(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.9)

    def update_targets(self):
        super().update_targets()
        self.schedule.step()


class Normalizer:
    def __init__(self):
        self.mean, self.square = torch.zeros(3), torch.ones(3)

    def update(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.square = 0.9 * self.square + 0.1 * x.square().mean(0)

    def __call__(self, x):
        return (x - self.mean) / (self.square - self.mean.square()).clamp(min=1e-2).sqrt()


class ANormalizerThatMakesNewTensors(Told):
    def begin(self):
        self.normalizer = Normalizer()

    def learn(self, rows, weights):
        self.normalizer.update(rows[:, :3])
        return super().learn(torch.cat([self.normalizer(rows[:, :3]), rows[:, 3:]], 1), weights)

    def act(self, observations):
        return super().act(self.normalizer(observations))


class ASizeInNumPy(Told):
    size = np.ones(1, np.float32)

    def learn(self, rows, weights):
        self.size = 0.9 * self.size + 0.1 * np.abs(rows[:, 5].numpy()).mean()
        return super().learn(rows, weights)


class TheClock(Told):
    line = (
        "learn calls the module time, in scale (return 1.0 + (time.time() < START)): "
        "do so outside, and give the method what comes out as an argument"
    )

    def scale(self, rows):
        return 1.0 + (time.time() < START)


class AFile(Told):
    line = (
        'learn calls open, in update_targets (with open(os.devnull, "a") as file:): '
        "do so outside, and give the method what comes out as an argument"
    )

    def update_targets(self):
        with open(os.devnull, "a") as file:
            file.write("learned")
        super().update_targets()


class APrint(Told):
    line = 'learn prints, in learn (print(f"loss {result[1]:.3f}")): print what scan returns'

    def learn(self, rows, weights):
        result = super().learn(rows, weights)
        print(f"loss {result[1]:.3f}")
        return result


class StopsEarly(Told):
    line = (
        "learn looks at a tensor's number, in learn (if result[1] < -0.05:): "
        "choose with torch.where, or outside of the method"
    )

    def learn(self, rows, weights):
        result = super().learn(rows, weights)
        if result[1] < -0.05:
            return result
        return result[0], -result[1]


class AHistory(Told):
    line = (
        "learn changes self.history, which is no tensor, in learn "
        "(self.history.append(result[1])): "
        "keep it in a tensor of the learner and write into that, or outside of the method"
    )

    def begin(self):
        self.history = []

    def learn(self, rows, weights):
        result = super().learn(rows, weights)
        self.history.append(result[1])
        return result


class KeepsTheLastLoss(Told):
    last = None

    def learn(self, rows, weights):
        result = super().learn(rows, weights)
        self.last = result[1]
        return result

    def look(self, fast, observations):
        return self.last.numpy()


class AHookWithACounter(Told):
    def begin(self):
        SEEN_BY_HOOK.clear()
        self.critic.register_forward_hook(lambda module, given, result: SEEN_BY_HOOK.append(1))


class AHookOfAnOptimizer(Told):
    line = "learn meets a hook of a tensor or optimizer: do in the method what the hook does"

    def begin(self):
        self.critic_optimizer.register_step_post_hook(lambda *given: SEEN_BY_HOOK.append(1))


class TheGradientOfTheStepBefore(Told):
    def scale(self, rows):
        gradient = self.critic.layers[3].bias.grad
        return 1.0 if gradient is None else 1 + gradient.abs()


class GradientsAreNotSetToZero(Told):
    line = "learn uses a gradient of the step before: set gradients to zero before backward()"

    def begin(self):
        self.actor_optimizer.zero_grad = lambda *given, **more: None


class ADelayedActorByAFlag(Told):
    def learn(self, rows, weights, with_actor):
        batch = split_rows(rows)
        if with_actor:
            return descend(self.actor_loss(batch), self.actor_optimizer)
        return self.learn_critic(batch).mean()

    def phase(self, fast, k, rows, weights):
        return fast.scan("learn", rows, weights, np.arange(len(rows)) % 2 == 0)


class RewardsAreCutByAMask(Told):
    line = (
        "learn makes a tensor whose size depends on numbers, in learn "
        "(rows[rows[:, 5] > 0.5, 5] = 0.5): multiply by a mask, or use torch.where"
    )

    def learn(self, rows, weights):
        rows[rows[:, 5] > 0.5, 5] = 0.5
        return super().learn(rows, weights)


class AMaskTakesRows(Told):
    def learn(self, rows, weights):
        return super().learn(rows[rows[:, 5] > 0], weights[rows[:, 5] > 0])[1:]


class TwoStatesThatShareMemory(Told):
    line = (
        "learn changes a tensor that shares memory with another one: "
        "give it memory of its own (clone)"
    )

    def begin(self):
        self.target_critic.layers[3].bias.data = self.critic.layers[3].bias.data


class AnIndexBeyondATable(DDPG):
    outcome = "IndexError"

    def begin(self):
        self.table = torch.linspace(1, 2, 3)

    def scale(self, rows):
        return self.table[rows[:, 0].abs().long()]


class AnIndexBeyondAnAxis(AnIndexBeyondATable):
    outcome = "RuntimeError"

    def scale(self, rows):
        return self.table.gather(0, rows[:, 0].abs().long())
