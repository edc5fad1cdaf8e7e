"""A training gives the same rows wherever it is trained, and what it may change."""

import json
import os
import signal
import socket
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from reacher import DelayedRewards
from reacher.columns import CLOCK, EARNINGS
from research import machine, runner, store
from research.training import make_training, train
from tutorial.environments import open_environment
from tutorial.notebook import definitions
from tutorial.paths import PROJECT
from tutorial.randomness import seed_everything

SMALL = {  # on a pendulum, in a second or two
    "location": "gymnasium:Pendulum-v1",
    "arms": 1,
    "evaluate_every": 1,
    "preset": "gymnasium",
    "engine": "torch",
    "hidden_units": 8,
    "learning_starts": 20,
    "batch_size": 16,
    "gradient_steps": 2,
    "replay_capacity": 5_000,
}


def small(seed=0, variant="small", **changes):
    return make_training("plan", variant, seed, {**SMALL, "episodes": 2, **changes})


def numbers(rows):
    """Rows without their seconds."""
    return [row[:-1] for row in rows]


def stored_numbers(folder, variant="small"):
    lines = (folder / "plan" / f"{variant}.csv").read_text().splitlines()
    return [line.split(",")[:-1] for line in lines[1:]]


def test_with_uniform_replay_the_whole_agent_is_the_reader_s_plain_one():
    """The same score to the last digit, by PyTorch, with one gradient step after each decision."""
    cells = definitions()
    alike = {"engine": "torch", "hidden_units": 8, "train_freq": 1, "gradient_steps": 1}
    off = {"n_step": 1, "noisy_layers": False, "noise_schedule": "constant"}
    changes = {**alike, **off, "replay": "uniform", "episodes": 1, "evaluate_every": 0}
    [row] = train(make_training("plan", "variant", 0, changes))
    generator, settings = seed_everything(0), cells.PlainSettings(hidden_units=8)
    learner = cells.PlainDDPG(*cells.plain_networks(settings), settings)
    memory = cells.UniformReplay(settings, generator)
    agent = cells.PlainAgent(learner, memory, generator, settings)
    score = cells.run_episode(open_environment(seed=0), agent).mean()
    assert row[store.COLUMNS.index("score")] == f"{score:.3f}"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_process_gives_the_rows_of_this_one_and_stores_them(
    tmp_path, capsys, monkeypatch, terminal
):
    """With a bar in a terminal, and the machine beside the tables."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    trainings = [small(seed) for seed in (5, 4)]
    assert runner.run_trainings(trainings, tmp_path, workers=1) == 0
    assert stored_numbers(tmp_path) == numbers(train(small(4)) + train(small(5)))
    told, bar = capsys.readouterr()
    assert told.count(": done") == 2 and "http" not in told  # there is no dashboard
    assert ("2/2" in bar) == terminal
    [path] = (tmp_path / "plan").glob("machine*.json")
    about = json.loads(path.read_text())
    assert about["processor"] and {"torch", "jax"} <= {*about["versions"]}
    machine.main([path.parent])
    about["parts"]["physics"] = "0"
    path.write_text(json.dumps(about))
    machine.main([path.parent])
    same, _, other = capsys.readouterr().out.partition(f"{path}:\n  physics: 0 there, ")
    assert "all parts agree" in same and other.count("\n") == 1
    with pytest.raises(SystemExit, match="has no machine"):
        machine.main([tmp_path])
    assert runner.run_trainings(trainings, tmp_path, workers=1) == 0  # nothing is to do
    assert capsys.readouterr().out == ""


def test_lumps_are_paid_in_time_and_arms_may_see_clock_and_earnings(register):
    space = gymnasium.spaces.Box(-np.inf, np.inf, (33,))
    environment = open_environment(f"gymnasium:{register(end=7, observation_space=space)}", 1)
    lumps = DelayedRewards(environment, every=3, clock=True, earnings=True, memory=True)
    answers = [lumps.reset(), *(lumps.step(np.zeros((1, 1), np.float32)) for _ in range(7))]
    assert [answer[1][0] for answer in answers[1:]] == [0, 0, 3, 0, 0, 7.5, 3.5]
    clock = [answer[0][0, CLOCK] for answer in answers]
    assert clock == pytest.approx([0, 1 / 3, 2 / 3, 0, 1 / 3, 2 / 3, 0, 0])  # the next episode's
    earnings = [answer[0][0, EARNINGS] for answer in answers]
    assert earnings == [0, 0.5, 1.5, 0, 2, 4.5, 0, 0]
    seen = [answer[0][0].reshape(4, 33) for answer in answers]
    for k, first in enumerate([0, 0, 0, 3, 3, 3, 6, 7]):  # since the last payday, and then nothing
        since = [now for now, *_ in seen[first : k + 1]]
        np.testing.assert_array_equal(seen[k][1:], [*since, *np.zeros((3 - len(since), 33))])


def start(*words):
    options = {"cwd": PROJECT, "env": os.environ | {"OMP_NUM_THREADS": "1"}}
    return subprocess.Popen([sys.executable, "-m", "dask", *words], **options)


def test_a_killed_worker_loses_nothing_and_what_fails_is_told(tmp_path, capsys):
    """A scheduler and two workers as processes of their own. When the first training is stored,
    both workers are at other trainings, and one of them is killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    words = ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    processes = [start("scheduler", "--port", address.rpartition(":")[2], "--no-dashboard")]
    processes += [start(*words) for _ in range(2)]
    good = [small(seed, episodes=4) for seed in range(3)]
    bad = small(0, "bad", mirrors=True)  # which a pendulum has not; `check` would have said so
    killed = []

    def keep(job, rows):
        store.store(runner.path_of(job, tmp_path), rows)
        if not killed:
            [worker] = [one for one, jobs in client.processing().items() if jobs][:1]
            os.kill(pids[worker], signal.SIGKILL)
            killed.append(pids[worker])

    try:
        with runner.connect(address) as client:
            client.wait_for_workers(2, timeout=60)
            pids = client.run(os.getpid)
            assert runner.run([*good, bad], keep, address) == 1
            assert len(client.scheduler_info()["workers"]) == 1
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert killed
    assert stored_numbers(tmp_path) == numbers([row for one in good for row in train(one)])
    told = capsys.readouterr().out
    assert "plan/bad, seed 0: FAILED, ValueError" in told and told.count(": done") == 3


@pytest.mark.parametrize("how", ["terminated", "truncated"])
def test_the_preset_of_gymnasium_trains(register, monkeypatch, how):
    """It needs no overrides, and knows terminal states from time limits."""
    agents, cells = [], definitions()
    play = cells.train_episode
    monkeypatch.setattr(cells, "train_episode", lambda *now: agents.append(now[1]) or play(*now))
    place = {"location": f"gymnasium:{register(end=4, how=how)}", "arms": 1}
    changes = {**place, "preset": "gymnasium", "episodes": 350, "evaluate_every": 0}
    rows = train(make_training("plan", "variant", 0, changes))
    assert {float(row[store.COLUMNS.index("score")]) for row in rows} == {5}  # 0.5 + 1 + 1.5 + 2
    discounts = agents[0].memory.ring.at(slice(agents[0].memory.ring.size)).discounts
    assert {*(discounts == 0).tolist()} == ({True, False} if how == "terminated" else {False})
