"""The compiled learner beside the notebook's: the same numbers, up to rounding.

How far may two float32 computations of the same formulas drift apart? Move every weight of the
PyTorch learner to a neighbouring float32 number and train both: what these two differ by after k
steps is what a single rounding of the start grows to. The engines round differently in each of
about ten operations, one after the other, of every step (products, normalisations, activations,
the optimiser), so `ROOM` times as much is allowed, and a few roundings of the largest weight, in
case a rounding of the start should happen to fade.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import torch

from tutorial.experiments.runner import EXPERIMENTS
from tutorial.paths import PROJECT
from tutorial.training import compiled, health, saving

SCALE = np.array([1.0, 2.0, 4.0], dtype=np.float32)  # of three observations
ACTIONS, BATCH, WIDTH = 2, 16, 2 * 3 + 2 + 2
SMALL = {
    "actor_hidden": (16, 16),
    "critic_hidden": (16, 16),
    "batch_size": BATCH,
    "learning_starts": 20,
    "replay_capacity": 1000,
}
ROOM = 30  # ten operations, and the two neighbours of a number are both possible, and luck
ROUNDING = 2.0**-24  # relative, float32

PLAIN = {
    "actor_normalization": "none",
    "critic_normalization": "none",
    "input_normalization": "none",
    "noisy_layers": False,
}
OPTIONS = [
    {},
    PLAIN | {"critic_hidden": (16, 8, 16), "critic_action_layer": 3},
    {"input_normalization": "none", "actor_normalization": "none", "critic_action_layer": 2},
    {"critic_normalization": "none", "noisy_layers": False, "negative_slope": 0.1},
    {
        "actor_hidden": (8, 4, 6),
        "critic_hidden": (8,),
        "initialization": "fan_in",
        "zero_target_critic": True,
        "tau": 1.0,
    },
    {"actor_hidden": (1,), "critic_hidden": (1, 1), "weight_decay": 0.01},
    {
        "actor_gradient_clip": 0.05,
        "critic_gradient_clip": 0.1,
        "weight_decay": 0.01,
        "actor_learning_rate": 1e-4,
        "critic_learning_rate": 3e-3,
    },
    {
        "actor_gradient_clip": 1e6,
        "critic_gradient_clip": 1e6,
        "tau": 1e-3,
        "actor_hidden": (128, 128),
        "critic_hidden": (128, 128),
        "batch_size": 64,
    },
]


def make_ddpg(notebook, defaults, seed=0, **overrides):
    torch.manual_seed(seed)
    return notebook.DDPG(SCALE, ACTIONS, defaults(**{**SMALL, **overrides}))


def make_rows(size=BATCH, seed=0):
    """Transitions, one of them terminal."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(size, WIDTH)).astype(np.float32)
    rows[:, 3:5] = np.tanh(rows[:, 3:5])
    rows[:, 6] = 0.9
    rows[0, 6] = 0.0
    return rows


def make_step(learner, number):
    """Arguments of `learn` for the step of this number; the actor learns in every second."""
    generator = np.random.default_rng([1, number])
    size = learner.settings.batch_size
    return (
        make_rows(size, number),
        generator.uniform(0.1, 1.0, size).astype(np.float32),
        generator.standard_normal((1, learner.noise_size), dtype=np.float32),
        number % 2 == 0,
    )


def train(learner, steps, begin=1):
    """Learn; return TD errors and losses of all steps."""
    return [learner.learn(*make_step(learner, number)) for number in range(begin, begin + steps)]


def neighbour(ddpg, seed=0):
    """A copy with every weight moved to a neighbouring number, up or down."""
    moved = copy.deepcopy(ddpg)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for network in (moved.actor, moved.critic):
            for parameter in network.parameters():
                up = torch.rand(parameter.shape, generator=generator) < 0.5
                infinite = torch.where(up, torch.inf, -torch.inf)
                parameter.copy_(torch.nextafter(parameter, infinite))
    return moved


def tensors_of(ddpg):
    """Every number of a learner: networks and averages of the optimisers."""
    found = {
        f"{name}.{key}": tensor
        for name, network in ddpg.networks().items()
        for key, tensor in network.state_dict().items()
    }
    for name, optimizer in ddpg.optimizers().items():
        for index, averages in optimizer.state_dict()["state"].items():
            found |= {f"{name}.{index}.{key}": tensor for key, tensor in averages.items()}
    return {name: tensor.clone() for name, tensor in found.items()}


def differences(one, other):
    """The largest difference of each network."""
    return {
        name: max(
            (a - b).abs().max().item()
            for a, b in zip(network.parameters(), other.networks()[name].parameters(), strict=True)
        )
        for name, network in one.networks().items()
    }


def same_bits(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


# ---------------------------------------------------------------------------------- same numbers


@pytest.mark.parametrize("overrides", OPTIONS, ids=str)
def test_both_engines_learn_the_same(notebook, defaults, overrides):
    """Every network, after 1 step and after 100, as far apart as roundings are."""
    plain = make_ddpg(notebook, defaults, **overrides)
    moved, base = neighbour(plain), copy.deepcopy(plain)
    twin = compiled.CompiledDDPG(base)
    for begin, steps in ((1, 1), (2, 99)):
        results = [train(learner, steps, begin) for learner in (plain, moved, twin)]
        twin.sync()
        allowed, found = differences(plain, moved), differences(plain, base)
        for name, network in plain.networks().items():
            largest = max(parameter.abs().max().item() for parameter in network.parameters())
            assert found[name] <= ROOM * (allowed[name] + ROUNDING * largest), (name, steps)
        for (errors, *losses), (twins, *twin_losses) in zip(results[0], results[2], strict=True):
            assert len(losses) == len(twin_losses)
            scale = np.abs(errors).max()
            np.testing.assert_allclose(twins, errors, rtol=0, atol=ROOM * 100 * ROUNDING * scale)
            np.testing.assert_allclose(
                twin_losses, losses, rtol=0, atol=ROOM * 100 * ROUNDING * (1 + scale**2)
            )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("overrides", [{}, EXPERIMENTS["pendulum"].overrides], ids=["", "pendulum"])
@pytest.mark.parametrize("scale", [[1.0, 1.0, 8.0], [1.0] * 33], ids=len)
def test_the_notebooks_comparison_stays_within_its_bound(
    notebook, defaults, scale, overrides, seed
):
    """Where rounding wakes a silent unit, too: so with Pendulum's three inputs and seed 2."""
    torch.manual_seed(seed)
    actions = 1 if len(scale) == 3 else 4
    plain = notebook.DDPG(np.array(scale, np.float32), actions, defaults(**overrides))
    for _, found, bound in compiled.compare(plain, phases=(1, 99)):
        assert max(found.values()) < bound


@pytest.mark.parametrize("wrong", [{"tau": 1.0}, {"actor_learning_rate": 2e-3}], ids=str)
def test_the_notebooks_comparison_finds_a_wrong_engine(notebook, defaults, monkeypatch, wrong):
    def other(ddpg, whole=compiled.CompiledDDPG):
        ddpg.settings = ddpg.settings.model_copy(update=wrong)
        return whole(ddpg)

    monkeypatch.setattr(compiled, "CompiledDDPG", other)
    torch.manual_seed(0)
    plain = notebook.DDPG(np.ones(33, np.float32), 4, defaults())
    *_, (_, found, bound) = compiled.compare(plain, phases=(1, 99))
    assert max(found.values()) > bound


@pytest.mark.parametrize("overrides", OPTIONS, ids=str)
def test_both_engines_act_and_rate_the_same(notebook, defaults, overrides):
    """With the mean weights, with one row of noise for all, and with a row for each."""
    plain = make_ddpg(notebook, defaults, **overrides)
    twin = compiled.CompiledDDPG(plain)
    rows = make_rows(20)
    generator = np.random.default_rng(0)
    for noise in (None, 1, 20):
        if noise:
            noise = generator.standard_normal((noise, plain.noise_size), dtype=np.float32)
        expected, found = (learner.act(rows[:, :3].copy(), noise) for learner in (plain, twin))
        assert found.shape == (20, ACTIONS) and found.dtype == np.float32
        # A sum of n products errs by n roundings of its terms at most, and three layers follow
        # each other; terms are of the order of 1 to 10 here.
        np.testing.assert_allclose(found, expected, rtol=0, atol=3 * 10 * 128 * ROUNDING)
    expected, found = (learner.td_errors(rows) for learner in (plain, twin))
    assert found.shape == (20,) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=3 * 10 * 128 * ROUNDING)


def test_noise_of_one_row_and_a_row_for_each_are_the_same_formula(notebook, defaults):
    twin = compiled.CompiledDDPG(make_ddpg(notebook, defaults))
    rows = make_rows(20)[:, :3].copy()
    noise = np.random.default_rng(0).standard_normal((1, twin.noise_size), dtype=np.float32)
    np.testing.assert_allclose(
        twin.act(rows, noise),
        twin.act(rows, np.repeat(noise, 20, 0)),
        rtol=0,
        atol=3 * 10 * 128 * ROUNDING,
    )


@pytest.mark.parametrize("engine", ["torch", "compiled"])
@pytest.mark.parametrize("overrides", [{}, PLAIN], ids=str)
def test_a_phase_is_its_steps(notebook, defaults, overrides, engine):
    """Up to rounding, where it is one call: the compiler may order other sums in a loop."""
    one, other = (make_ddpg(notebook, defaults, **overrides) for _ in range(2))
    steps, phase = (compiled.learner(ddpg, engine) for ddpg in (one, other))
    singly = train(steps, 6)
    rows, weights, noise, with_actor = map(
        np.stack, zip(*(make_step(phase, number) for number in range(1, 7)), strict=True)
    )
    errors, losses = phase.learn_phase(rows, weights, noise, with_actor)
    assert losses.shape == (6, 2) and not losses[~with_actor, 1].any()
    for k, (expected, *expected_losses) in enumerate(singly):
        np.testing.assert_allclose(errors[k], expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(losses[k][: len(expected_losses)], expected_losses, atol=1e-5)
    if engine == "compiled":
        steps.sync(), phase.sync()
        assert steps.steps == phase.steps
    assert max(differences(one, other).values()) < 1e-5


@pytest.mark.skipif(sys.platform != "linux", reason="what other systems do was not looked at")
@pytest.mark.parametrize("offset", [0, 16])  # in bytes, of the rows behind a multiple of 64
def test_a_phase_is_computed_in_the_thread_that_calls(notebook, defaults, offset):
    """On another core it takes a quarter longer. Shares of processor time, no times: a phase in a
    second thread leaves about a tenth of it to the one that calls."""
    torch.manual_seed(0)
    settings = defaults()
    scale = np.ones(33, dtype=np.float32)  # sizes of the arms: XLA hands small work to no one
    learner = compiled.CompiledDDPG(notebook.DDPG(scale, 4, settings))
    if "xla_cpu_scheduler_type" not in compiled.options():
        pytest.skip("this version of JAX's compiler has no option for it")
    steps, width = settings.gradient_steps, 2 * 33 + 4 + 2
    generator = np.random.default_rng(0)
    rows = compiled.aligned(np.empty(steps * settings.batch_size * width + 4, np.float32))
    rows = rows[offset // 4 :][: steps * settings.batch_size * width]
    rows = rows.reshape(steps, settings.batch_size, width)
    rows[...] = generator.standard_normal(rows.shape)

    def learn():
        learner.learn_phase(
            rows,
            np.ones(rows.shape[:2], np.float32),
            generator.standard_normal((steps, 1, learner.noise_size), np.float32),
            np.arange(steps) % 2 == 0,
        )
        learner.td_errors(rows.reshape(-1, width)[:200])

    learn()  # compiles
    before = time.thread_time(), time.process_time()
    for _ in range(20):
        learn()
    assert time.thread_time() - before[0] > 0.5 * (time.process_time() - before[1])


def test_learning_rates_are_set_for_both(notebook, defaults):
    """A tenth of the rate moves weights by a tenth: Adam's first step has the size of the rate."""
    moves = []
    for factor in (1.0, 0.1):
        ddpg = make_ddpg(notebook, defaults, actor_learning_rate=1e-3, critic_learning_rate=4e-3)
        twin, before = compiled.CompiledDDPG(ddpg), copy.deepcopy(ddpg)
        twin.set_learning_rates(factor)
        train(twin, 1, begin=2)
        twin.sync()
        moves.append([differences(ddpg, before)[name] for name in ("actor", "critic")])
    assert moves[0] == pytest.approx([1e-3, 4e-3], rel=0.01)
    assert moves[1] == pytest.approx([1e-4, 4e-4], rel=0.01)


def test_an_actors_loss_with_other_noise_is_an_error(notebook, defaults):
    twin = compiled.CompiledDDPG(make_ddpg(notebook, defaults))
    rows, weights, noise, _ = make_step(twin, 2)
    with pytest.raises(ValueError, match=r"noise must have the shape \(1, 1, 50\)"):
        twin.learn(rows, weights, noise[:, 1:])


# ------------------------------------------------------------------------- one format, same bits


@pytest.mark.parametrize("overrides", [{}, PLAIN, {"zero_target_critic": True}], ids=str)
def test_taking_over_and_writing_back_changes_no_bit(notebook, defaults, overrides):
    ddpg = make_ddpg(notebook, defaults, **overrides)
    for steps in (0, 1, 3):  # without averages, those of the critic alone, and all
        train(ddpg, steps)
        before = tensors_of(ddpg)
        compiled.CompiledDDPG(ddpg).sync()
        assert same_bits(before, tensors_of(ddpg))


def test_a_state_of_either_engine_is_one_of_the_other(notebook, defaults):
    """Names and shapes; and what one saved, the other goes on from."""
    plain, base = (make_ddpg(notebook, defaults) for _ in range(2))
    twin = compiled.CompiledDDPG(base)
    train(plain, 4), train(twin, 4), twin.sync()
    states = saving.learner_tensors(plain), saving.learner_tensors(base)
    assert [(name, tensor.shape, tensor.dtype) for name, tensor in states[0].items()] == [
        (name, tensor.shape, tensor.dtype) for name, tensor in states[1].items()
    ]

    other = make_ddpg(notebook, defaults, seed=1)
    saving.restore_learner(other, states[0])  # from PyTorch to compiled
    resumed = compiled.CompiledDDPG(other)
    train(plain, 4, begin=5), train(resumed, 4, begin=5), resumed.sync()
    for name, difference in differences(plain, other).items():
        assert 0 < difference < 1e-5, name

    other = make_ddpg(notebook, defaults, seed=1)
    saving.restore_learner(other, states[1])  # from compiled to PyTorch
    train(other, 4, begin=5), train(twin, 4, begin=5), twin.sync()
    for name, difference in differences(other, base).items():
        assert 0 < difference < 1e-5, name


def test_a_restored_learner_goes_on_bit_for_bit(notebook, defaults):
    base = make_ddpg(notebook, defaults)
    twin = compiled.CompiledDDPG(base)
    train(twin, 5), twin.sync()
    other = make_ddpg(notebook, defaults, seed=1)
    saving.restore_learner(other, saving.learner_tensors(base))
    resumed = compiled.CompiledDDPG(other)
    for learner in (twin, resumed):
        train(learner, 5, begin=6), learner.sync()
    assert same_bits(tensors_of(base), tensors_of(other))


def in_another_process(code, **environment):
    """Output of a program that has the notebook's definitions."""
    program = f"""
        import sys
        sys.path[:0] = [{str(PROJECT)!r}, {str(PROJECT / "tests")!r}]
        from tutorial.notebook import definitions
    """
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error::UserWarning",
            "-c",
            textwrap.dedent(program) + textwrap.dedent(code),
        ],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


DIGEST = """
    import hashlib
    import test_compiled as t
    notebook = definitions()
    defaults = lambda **overrides: notebook.make_hyperparameters("default", overrides)
    base = t.make_ddpg(notebook, defaults, actor_hidden=(128, 128), critic_hidden=(128, 128))
    twin = t.compiled.CompiledDDPG(base)
    t.train(twin, 20), twin.sync()
    digest = hashlib.sha256()
    for name, tensor in t.tensors_of(base).items():
        digest.update(tensor.numpy().tobytes())
    noise = t.np.ones((20, twin.noise_size), t.np.float32)
    digest.update(twin.act(t.make_rows(20)[:, :3].copy(), noise).tobytes())
    digest.update(twin.td_errors(t.make_rows(20)).tobytes())
    print(digest.hexdigest())
"""


def test_two_processes_compute_the_same_bits():
    outputs = [in_another_process(DIGEST)[0] for _ in range(2)]
    assert outputs[0] == outputs[1] and len(outputs[0]) == 65


# ------------------------------------------------------------------------------- watching numbers


def test_a_number_that_is_none_is_seen(notebook, defaults):
    for field in ("actor", "critic"):
        ddpg = make_ddpg(notebook, defaults)
        with torch.no_grad():
            next(getattr(ddpg, field).parameters()).view(-1)[0] = torch.nan
        twin = compiled.CompiledDDPG(ddpg)
        assert not health.is_finite(twin) and not health.is_finite(ddpg)
    twin = compiled.CompiledDDPG(make_ddpg(notebook, defaults))
    assert health.is_finite(twin)
    rows, *others = make_step(twin, 2)
    rows[3, 5] = np.inf
    errors, *losses = twin.learn(rows, *others)
    assert not np.isfinite(errors).all() and not np.isfinite(losses).any()
    assert not health.is_finite(twin)


# ------------------------------------------------------------------------- where it cannot be used


@pytest.mark.parametrize(
    "name", ["input_normalization", "actor_normalization", "critic_normalization"]
)
def test_batch_normalisation_is_left_to_pytorch(notebook, defaults, name):
    settings = defaults(**{name: "batch"})
    assert compiled.why_not(settings) == (
        f'batch normalisation ({name} = "batch") is left to PyTorch'
    )
    with pytest.raises(ValueError, match="left to PyTorch"):
        compiled.CompiledDDPG(make_ddpg(notebook, defaults, **{name: "batch"}))


def test_all_else_can_be_compiled(defaults):
    for overrides in OPTIONS:
        assert compiled.why_not(defaults(**overrides)) is None


USE_TORCH = """
    from tutorial.training import compiled
    assert "jax" not in sys.modules
    notebook = definitions()
    settings = notebook.make_hyperparameters("default", {})
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, 2, settings,
                           notebook.np.random.default_rng(0))
    agent.act(notebook.np.zeros((2, 33), notebook.np.float32))
    assert "jax" not in sys.modules
    print(compiled.why_not(settings))
"""


def test_nothing_of_jax_is_imported_before_it_is_used():
    assert in_another_process(USE_TORCH)[0] == "None\n"


@pytest.mark.parametrize(
    "content, reason",
    [
        (None, "JAX is not installed (no module named 'jax'): pip install jax"),
        (
            "import jaxlib_that_is_not_there",
            "JAX is not installed (no module named 'jaxlib_that_is_not_there'): pip install jax",
        ),
        (
            "raise RuntimeError('jaxlib is version 1, but\\n2 is needed')",
            "JAX is installed but does not work: RuntimeError: jaxlib is version 1, but",
        ),
        (
            "",
            "JAX is installed but does not work: AttributeError: module 'jax' has no attribute "
            "'config'",
        ),
        ("raise SystemError", "JAX is installed but does not work: SystemError: "),
    ],
)
def test_pytorch_trains_without_a_jax_that_works(tmp_path, content, reason):
    if content is None:  # as if there were none
        code = "\n    sys.modules['jax'] = None" + USE_TORCH.replace(
            'assert "jax" not in sys.modules', ""
        )
        assert "JAX" in in_another_process(code)[0]
        return
    (tmp_path / "jax.py").write_text(content)
    output, _ = in_another_process(f"\n    sys.path.insert(0, {str(tmp_path)!r})" + USE_TORCH)
    assert output == reason + "\n"


def test_the_users_flags_are_kept_and_nothing_is_warned_of():
    code = """
        import warnings
        warnings.simplefilter("error")
        from tutorial.training import compiled
        assert compiled.why_no_jax() is None
        import os
        import jax
        print(os.environ.get("XLA_FLAGS"), os.environ.get("NPROC"), jax.devices()[0].platform,
              jax.numpy.ones(()).dtype)
    """
    assert in_another_process(code) == ("None None cpu float32\n", "")
    flags = "--xla_cpu_prefer_vector_width=256"
    assert in_another_process(code, XLA_FLAGS=flags, NPROC="2") == (f"{flags} 2 cpu float32\n", "")
