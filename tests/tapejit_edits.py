"""Edits that people make to a learner, each as a class `Edited(DDPG)` and functions around it.

`before(d, k)` and `after(d, k)` run around update phase k, `act(d, fast, observations)` and
`learn(d, fast, *arguments)` take the place of the compiled calls. `EVERY_7TH` copies a network at
each seventh step.
"""

from __future__ import annotations

import re

EVERY_7TH = """
def hard_update(d, count):
    if count % 7 == 0:
        with torch.no_grad():
            for old, new in zip(d.target_critic.parameters(), d.critic.parameters()):
                old.copy_(new)
"""
CRITIC = """
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.critic = Mine(self.critic)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
"""
ACTOR = CRITIC.replace("critic", "actor")
LEARN = """
class Edited(DDPG):
    def learn(self, *arguments):
        result = super().learn(*arguments)
"""

# Those of strangers: each trained something else than PyTorch, and nobody was told.
STRANGERS = """
# counter in a global dict: torch
COUNT = {"n": 0}
{EVERY_7TH}
{LEARN}
        COUNT["n"] += 1
        hard_update(self, COUNT["n"])
        return result

# counter in a global list: torch
COUNT = [0]
{EVERY_7TH}
{LEARN}
        COUNT[0] += 1
        hard_update(self, COUNT[0])
        return result

# itertools.count: torch
COUNT = itertools.count(1)
{EVERY_7TH}
{LEARN}
        hard_update(self, next(COUNT))
        return result

# counter in an object of the learner: torch
class Clock:
    ticks = 0
    def tick(self):
        self.ticks += 1
        return self.ticks
{EVERY_7TH}
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.clock = Clock()
    def learn(self, *arguments):
        hard_update(self, self.clock.tick())
        return super().learn(*arguments)

# counter in a closure: torch
{EVERY_7TH}
def make():
    n = 0
    def tick():
        nonlocal n
        n += 1
        return n
    return tick
TICK = make()
{LEARN}
        hard_update(self, TICK())
        return result

# counter in an array of NumPy: torch
COUNT = np.zeros(1, int)
{EVERY_7TH}
{LEARN}
        COUNT[0] += 1
        hard_update(self, COUNT[0])
        return result

# counter as attribute of a function: torch
{EVERY_7TH}
def step(d):
    step.n = getattr(step, "n", 0) + 1
    hard_update(d, step.n)
{LEARN}
        step(self)
        return result

# random.random: torch
import random
{LEARN}
        if random.random() < 0.8:
            soft_update(self.target_actor, self.actor, 0.5)
        return result

# np.random.rand: torch
{LEARN}
        if np.random.rand() < 0.8:
            soft_update(self.target_actor, self.actor, 0.5)
        return result

# a random.Random of one's own: torch
import random
CHANCE = random.Random(0)
{LEARN}
        if CHANCE.random() < 0.8:
            soft_update(self.target_actor, self.actor, 0.5)
        return result

# whole numbers beyond 32 bits: compiled
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        bucket = (rows[:, 0] * 1e9).long() * 16 % 7
        return super().learn(rows, weights * (1 + bucket.float()), *others)

# a dict of the learner is changed: compiled
class Edited(DDPG):
    options = {"scale": 1.0}
    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * self.options["scale"], *others)
def before(d, k):
    d.options["scale"] = 3.0 if k > 3 else 1.0

# a tensor of the learner is changed in place: compiled
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.scale = torch.ones(1)
    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * self.scale, *others)
def before(d, k):
    d.scale.fill_(1.0 + k)

# a gain of the network is annealed: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.gain = inner, 1.0
    def forward(self, *arguments):
        return self.gain * self.inner(*arguments)
{CRITIC}
def before(d, k):
    d.critic.gain = 2.0 if k > 3 else 1.0

# a global number is changed: compiled
SCALE_OF_LOSS = 1.0
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * SCALE_OF_LOSS, *others)
def before(d, k):
    global SCALE_OF_LOSS
    SCALE_OF_LOSS = 1.0 + (k > 3)

# a global dict is changed: compiled
OPTIONS = {"scale": 1.0}
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * OPTIONS["scale"], *others)
def before(d, k):
    OPTIONS["scale"] = 1.0 + (k > 3)

# a layer is frozen from a phase on: compiled
class Edited(DDPG):
    pass
def before(d, k):
    if k == 4:
        for parameter in d.critic.blocks.parameters():
            parameter.requires_grad_(False)

# a running mean of the observations: compiled
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.mean = torch.zeros(3)
    def act(self, observations, noise=None):
        return super().act(observations - self.mean, noise)
    def learn(self, rows, *others):
        return super().learn(torch.cat([rows[:, :3] - self.mean, rows[:, 3:]], 1), *others)
def before(d, k):
    d.mean.lerp_(torch.full((3,), 1.0 + k), 0.1)

# parameter noise: compiled
class Edited(DDPG):
    pass
def before(d, k):
    with torch.no_grad():
        for parameter in d.actor.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))

# the last layer is reset: compiled
class Edited(DDPG):
    pass
def before(d, k):
    d.critic.output.reset_parameters()

# targets are loaded at the end of an episode: compiled
class Edited(DDPG):
    pass
def after(d, k):
    d.target_critic.load_state_dict(d.critic.state_dict())

# a new critic is loaded: compiled
class Edited(DDPG):
    pass
def after(d, k):
    new = Critic(np.ones(3, np.float32), 2, d.settings)
    d.critic.load_state_dict(new.state_dict())

# weights are clipped after a phase, by data: compiled
class Edited(DDPG):
    pass
def after(d, k):
    for parameter in d.critic.parameters():
        parameter.data.clamp_(-0.2, 0.2)

# the optimizer's state is cleared: compiled
class Edited(DDPG):
    pass
def after(d, k):
    if k in (3, 4):
        d.critic_optimizer.state.clear()

# a running statistic as buffer: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.register_buffer("mean", torch.zeros(3))
    def forward(self, observations, *others):
        return self.inner(observations - self.mean, *others)
{ACTOR}
def before(d, k):
    d.actor.mean += 0.1

# the learner acts, called directly: compiled
class Edited(DDPG):
    pass
def act(d, fast, observations):
    return d.act(torch.from_numpy(observations)).numpy()

# the learner rates, called directly: compiled
class Edited(DDPG):
    pass
def act(d, fast, observations):
    return d.td_errors(torch.from_numpy(np.tile(observations, (1, 4))[:, :10])).numpy()

# a loop over learn of one's own: compiled
class Edited(DDPG):
    pass
def learn(d, fast, rows, weights, noise):
    if len(fast.calls) % 2:
        return fast.scan("learn", rows, weights, noise)
    for k in range(len(rows)):
        result = d.learn(*map(torch.from_numpy, (rows[k], weights[k], noise[k])))
    return [np.array(each) for each in result]

# no number through a ReLU of the critic: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, observations, *others):
        return self.inner(F.relu(torch.sqrt(2.0 - observations.abs())), *others)
{CRITIC}

# no number through a ReLU of the actor: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, observations, *others):
        return self.inner(torch.relu(torch.sqrt(2.0 - observations.abs())), *others)
{ACTOR}

# no number through a ReLU of the target: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, observations, *others):
        return self.inner(nn.ReLU()(torch.sqrt(2.0 - observations.abs())), *others)
{CRITIC}
        self.critic, self.critic_optimizer = self.target_critic.inner, self.critic_optimizer

# an index beyond a table: raises IndexError
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.table = torch.linspace(1, 2, 3)
    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * self.table[rows[:, 0].abs().long()], *others)

# an index beyond an axis: raises RuntimeError
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.table = torch.linspace(1, 2, 3)
    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * self.table.gather(0, rows[:, 0].abs().long()), *others)

# the arguments are changed in place: compiled
class Edited(DDPG):
    def learn(self, rows, *others):
        rows[:, 5] *= 0.5
        return super().learn(rows, *others)
def act(d, fast, observations):
    rows = np.tile(observations, (1, 4))[:, :10].copy()
    fast.call("learn", rows, np.ones(len(rows), np.float32))
    return rows

# a global counter: torch
COUNT = 0
{EVERY_7TH}
{LEARN}
        global COUNT
        COUNT += 1
        hard_update(self, COUNT)
        return result
"""


def table(text: str) -> dict[str, tuple[str, str]]:
    """Name, outcome and code of each edit."""
    found = {}
    for part in re.split(r"^# (?=.*: (?:compiled|torch|raises|either)\b)", text, flags=re.M)[1:]:
        head, _, code = part.partition("\n")
        name, _, outcome = head.rpartition(": ")
        for each in ("EVERY_7TH", "CRITIC", "ACTOR", "LEARN"):
            code = code.replace("{" + each + "}", globals()[each].strip("\n"))
        found[name] = outcome, code
    return found
