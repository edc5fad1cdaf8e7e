"""Tables of scores over seeds, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scipy import stats

from tutorial.scores import SOLVED_SCORE, first_at, solved_at

REPORTS = {
    "C": "deeprl",
    "B": "walkthrough",
    "A": "reacher_arm",
    "A, two changes": "reacher_arm_changed",
}
Runs = Mapping[str, Mapping[str, np.ndarray]]  # of several seeds, as `read_runs` returns them


def as_markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the cells of its head and of its lines are text."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, *lines))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def median_and_range(values: Sequence[float | None]) -> str:
    """Of numbers over seeds, or None, which counts as larger than any."""
    numbers = [np.inf if value is None else value for value in values]
    low, middle, high = (
        "never" if number == np.inf else f"{number:.3g}"
        for number in (min(numbers), np.median(numbers), max(numbers))
    )
    return f"{middle} ({low} to {high})"


def mean_and_interval(values: Sequence[float], digits: int = 2) -> str:
    """Mean over seeds with its 95 % t-interval."""
    ends = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    mean, low, high = (f"{end:.{digits}f}" for end in (np.mean(values), *ends))
    return f"{mean} ({low} to {high})"


def presets_table(trainings: Mapping[str, Runs], evaluations: Mapping[str, Runs]) -> str:
    """What ten seeds of each preset reached, in training and in evaluations without noise.

    Args:
        trainings: scores by preset and seed.
        evaluations: of the same runs.
    """
    head = [
        "preset",
        "seeds",
        "first training score of 30: episode, median (range)",
        "seconds until then",
        "training scores of 1-100, mean (95 %)",
        "evaluations after 100, mean (95 %)",
        "lowest seed's",
        "solved at 100",
    ]
    lines = []
    for name, runs in trainings.items():
        firsts = {seed: first_at(run["score"]) for seed, run in runs.items()}
        seconds = [first and runs[seed]["seconds"][first - 1] for seed, first in firsts.items()]
        final = [run["score"][run["episode"] > 100].mean() for run in evaluations[name].values()]
        solved = sum(solved_at(run["score"]) == 100 for run in runs.values())
        lines.append(
            [
                f"`{name}`",
                str(len(runs)),
                median_and_range([*firsts.values()]),
                median_and_range(seconds),
                mean_and_interval([run["score"][:100].mean() for run in runs.values()]),
                mean_and_interval(final),
                f"{min(final):.2f}",
                f"{solved} of {len(runs)}",
            ]
        )
    return as_markdown(head, lines)


def runs_table(groups: Mapping[str, Runs], reward_threshold: float = SOLVED_SCORE) -> str:
    """A line for each training: first episode at the threshold, solved, mean of the last ten."""
    lines = [
        [
            name,
            seed,
            str(first_at(run["score"], reward_threshold) or "never"),
            str(solved_at(run["score"], reward_threshold) or "not"),
            f"{run['score'][-10:].mean():.2f}",
        ]
        for name, runs in groups.items()
        for seed, run in runs.items()
    ]
    return as_markdown(
        [
            "agent",
            "seed",
            f"first episode at {reward_threshold:g}",
            "solved at",
            "mean of the last ten",
        ],
        lines,
    )


PUBLIC = [  # repository, method, first episode at 30, mean of 1-100 or what is said, plateau, time
    (
        "Dyke-F/Udacity-DRL-Nanodegree-ContinousControl",
        "TD3",
        "6",
        "ran 20 episodes",
        "34.2-38.5",
        "152 min",
    ),
    ("daraliu/drl-continuous-control", "DDPG", "10", "36.17", "39.1", "-"),
    ("Zartris/TD3_continuous_control", "TD3", "21", "32.0", "36.6", "73 min"),
    ("DohaData/ReacherProject", "DDPG", "20 or before", "33.98", "37", "-"),
    ("Wilbertz/Continuous-Control", "DDPG", "17", "33.42", "38.5-39.2", "80 min, GPU"),
    ("crazyleg/TD3-reacher", "TD3", "21", "30.49", "38.7", "-"),
    ("AgainBot/Project2-ContinuousControl", "DDPG", "41-50", "solved at 112", "39.5", "28 min"),
    ("AIME2021KE/P2_continuous-control", "DDPG", "-", "solved at 109", "38.9", "32 min"),
    ("ulamaca/DRLND_P2_Continuous_Control", "PPO", "-", "solved at 187", "-", "20 min"),
    ("whiterabbitobj/Continuous_Control", "D4PG", "-", "solved near 125", "38.0", "-"),
    ("trlaw/UdacityRL-ReacherArmProject", "DDPG, PER", "-", "solved at 220", "-", "-"),
]


def public_record_table(trainings: Mapping[str, Runs]) -> str:
    """What others printed of this task in the Unity build with 20 arms, and the presets here."""
    this_project = [
        [
            f"this notebook, `{name}`, {len(runs)} seeds",
            "DDPG",
            f"{np.median([first_at(run['score']) or np.inf for run in runs.values()]):g} (median)",
            f"{np.mean([run['score'][:100] for run in runs.values()]):.2f}",
            f"{np.mean([run['score'][80:100] for run in runs.values()]):.1f}",
            f"{np.median([run['seconds'][99] for run in runs.values()]) / 60:.1f} min",
        ]
        for name, runs in trainings.items()
    ]
    head = [
        "who",
        "method",
        "first episode at 30",
        "mean of 1-100",
        "mean of 81-100 or plateau",
        "time",
    ]
    return as_markdown(head, [*PUBLIC, *this_project])


def pendulum_table(runs: Runs) -> str:
    """Means of ten episodes of each training: the first, the last, the best."""
    lines = []
    for name, run in runs.items():
        tens = np.convolve(run["score"], np.ones(10) / 10, mode="valid")
        lines.append([name, f"{tens[0]:.0f}", f"{tens[-1]:.0f}", f"{tens.max():.0f}"])
    return as_markdown(["Pendulum-v1", "first 10", "last 10", "best 10"], lines)


def fidelity_table(fidelity: Mapping) -> str:
    """The same policies in Unity and here, as experiments/fidelity.py measures them."""
    lines = [
        [
            entry["source"],
            entry["algorithm"] or "-",
            f"{entry['unity_score']:.2f}",
            f"{np.mean(entry['scores']):.2f}",
            f"{np.mean(entry['scores']) - entry['unity_score']:+.2f}",
        ]
        for entry in fidelity["trained"]
    ]
    off = [float(line[-1]) for line in lines]
    if off:
        mean = f"{np.mean(off):+.2f} ({np.abs(off).mean():.2f})"
        lines.append(["mean of all (of absolute differences)", "", "", "", mean])
    for entry in fidelity["per_arm"]:
        unity, here = np.mean(entry["unity"]), np.mean(entry["here"])
        lines.append(
            [
                f"{entry['source']}, {len(entry['unity'])} arms on the goals that they had in "
                f"Unity; correlation of their scores {max(entry['correlations']):.2f}",
                entry["algorithm"] or "-",
                f"{unity:.2f}",
                f"{here:.2f}",
                f"{here - unity:+.2f}",
            ]
        )
    for where, found in fidelity.get("random", {}).items():
        name = "Unity" if where == "unity" else "here"
        score = f"{found['mean']:.3f}"
        lines.append(
            [
                f"random torques, {name}, {found['episodes']} episodes of 20 arms; of "
                f"{found['single_arms']} single arms {100 * found['share_at_0']:.0f} % at 0",
                "",
                *((score, "") if where == "unity" else ("", score)),
                "",
            ]
        )
    return as_markdown(["policy", "method", "Unity", "here", "difference"], lines)
