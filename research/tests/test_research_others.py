"""Policies from Unity, figures, and numbers of pages."""

import csv
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from reacher import ReacherVectorEnv
from reacher.episode import evaluate_policy
from research import fidelity, tables
from research.__main__ import main
from research.plans import PLANS
from tutorial.paths import PROJECT, plan_folder
from tutorial.results import mean_interval

RESULTS = PROJECT / "research" / "results"
INGREDIENTS = (PROJECT / "research" / "ingredients.md").read_text()
UNITY = PROJECT.parent / "shared" / "unity_policies"


def test_a_figure_is_drawn(tmp_path):
    assert main(["figure", "--out", str(tmp_path / "bugs.png")]) == 0
    assert plt.imread(tmp_path / "bugs.png").std() > 0.05  # something is there


@pytest.mark.skipif(not UNITY.is_dir(), reason=f"no reference data in {UNITY}")
def test_policies_trained_in_unity_score_here_what_they_scored_there():
    differences = {}
    for policy, act in fidelity.read_policies(UNITY):
        env = ReacherVectorEnv(20, seed=0)
        score = np.mean([evaluate_policy(env, act) for _ in range(3)])
        differences[policy["file"]] = score - policy["unity_score"]
    assert len(differences) == 7
    off = np.abs(list(differences.values()))
    assert off.max() <= 2.5, differences
    assert off.mean() <= 0.9, differences


def rows_of(table):
    with open(RESULTS / f"{table}.csv", newline="") as file:
        return [*csv.DictReader(file)]


def test_the_page_on_unity_tells_what_all_stored_policies_say():
    known = json.loads((RESULTS / "fidelity.json").read_text())
    pairs = [(one["unity_score"], np.mean(one["scores"])) for one in known["trained"]]
    for row in rows_of("unity_scores"):
        pairs.append((float(row["printed in Unity"]), float(row["here"])))
    unity, here = np.transpose(pairs)
    more = here - unity
    page = (PROJECT / "doc" / "unity.md").read_text()
    for words, chosen in (
        ("| above 38.5 points | {} | {:+.2f} | {:+.2f} to {:+.2f} |", unity > 38.5),
        ("| 28 to 38.5 points | {} | {:+.2f} | {:+.2f} to {:+.2f} |", unity <= 38.5),
    ):
        found = more[chosen]
        assert words.format(len(found), found.mean(), found.min(), found.max()) in page
    mean, low, high = mean_interval(more)
    assert f"| all | {len(more)} | {mean:+.2f} ({low:.2f} to {high:.2f}) | " in page
    first = len(known["trained"])
    mean, low, high = mean_interval(more[first:])
    assert f"differ by {mean:+.2f} ({low:.2f} to {high:.2f})" in page
    assert f"differ by {more[:first].mean():.2f} on average" in page
    wide = stats.t.ppf(0.975, len(more) - 1) * more.std(ddof=1) * np.sqrt(1 + 1 / len(more))
    assert f"by {more.mean() - wide:.1f} to +{more.mean() + wide:.1f} points" in page
    for name in "here", "unity":
        assert f"{known['random'][name]['mean']:.3f}" in page
    rows = [row for row in rows_of("sweeps") if row["agent"]]
    weak = np.array([float(row["printed in Unity"]) < 38.5 for row in rows])
    assert (len(rows), weak.sum()) == (14, 9)
    for sweeps, words in ("6+1", "takes {:.2f} points (standard error {:.2f})"), ("12+12", None):
        lost = np.array([float(row["port"]) - float(row[sweeps]) for row in rows])
        error = lost[weak].std(ddof=1) / np.sqrt(weak.sum())
        assert (words or "take {:.2f} ({:.2f})").format(lost[weak].mean(), error) in page
        assert abs(lost[~weak].mean()) < 0.05  # nothing


def test_numbers_of_pages_that_no_table_prints():
    def values(plan, name):
        return PLANS[plan].values(name, tables.read(plan)[name])

    noisy = [
        values("three", f"n_{n}_prioritized_noisy") - values("three", f"n_{n}_prioritized_plain")
        for n in (1, 3)
    ]
    mean, low, high = mean_interval(np.mean(noisy, axis=0))
    assert f"and {mean:.1f} in another (`three`, {low:.1f} to {high:.1f})" in INGREDIENTS
    ended = values("end_of_learning", "default").mean()
    page = (PROJECT / "research" / "comparisons.md").read_text()
    assert f"`default` 128 have {ended:.2f} points" in page


def scores_of(plan, episodes, column="score"):
    """The mean score of these episodes by variant, (seeds,), without our own readers."""
    found = {}
    for path in plan_folder(plan).glob("*.csv"):
        table = np.genfromtxt(path, delimiter=",", names=True)
        kept = np.isin(table["episode"], episodes)
        each = [table[column][kept & (table["seed"] == seed)] for seed in {*table["seed"]}]
        found[path.stem] = np.mean(each, axis=1)
    return found


def told(values):
    """A mean and its interval."""
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return f"{values.mean():.1f} ({low:.1f} to {high:.1f})"


def gained(one, other, sign="+"):
    """A difference of means and its interval."""
    ends = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    return f"{one.mean() - other.mean():{sign}.1f} ({ends.low:.1f} to {ends.high:.1f})"


def test_what_is_added_first_is_what_scipy_says():
    early = scores_of("spine", range(1, 11))
    for variant, name in {
        "plain": "plain DDPG",
        "none": "phases of forty gradient steps",
        "n": "n = 3",
        "np": "n = 3, prioritized replay",
        "npx": "all three",
        "p": "prioritized replay",
        "x": "NoisyNet",
        "npx_instead": "all three, without noise on torques",
        "norm_none": "layer normalization",
        "norm_n": "normalization, n = 3",
        "norm_p": "normalization, prioritized replay",
        "norm_x": "normalization, NoisyNet",
        "norm_np": "normalization, n = 3, prioritized replay",
        "norm_npx": "normalization, all three",
        "mirror_none": "mirrors",
        "both_none": "mirrors, layer normalization",
        "both_n": "both, n = 3",
        "both_np": "both, n = 3, prioritized replay",
        "both_npx": "both, all three",
    }.items():
        values = early[variant]
        assert len(values) == (30 if variant in ("none", "n", "np", "npx") else 12)
        gain = "" if variant == "none" else gained(values, early["none"])
        assert f"| {name} | {told(values)} | {gain} |" in INGREDIENTS


def test_the_trial_of_late_pay_is_what_scipy_says():
    """Rows are in the order of the plan."""
    final = scores_of("late", (10, 12, 14), "evaluation")
    rows = INGREDIENTS.partition("| changed |")[2].splitlines()[2:]
    for variant, row in zip(PLANS["late"].variants, rows, strict=False):
        gain = "" if variant == "none" else gained(final[variant], final["none"])
        assert f" | {told(final[variant])} | {gain}" in row
    for pair in PLANS["late"].secondary.values():
        assert gained(*map(final.get, pair)) in INGREDIENTS


def test_phases_beside_a_tuned_plain_agent_are_what_scipy_says():
    tuning, found = (scores_of(plan, range(1, 11)) for plan in ("plain_tuning", "plain_tuned"))
    best = max(tuning, key=lambda name: tuning[name].mean())
    assert PLANS["plain_tuned"].variants["tuned"] == PLANS["plain_tuning"].variants[best]
    words = "has {}", "(`plain_tuning`) {}", "decision have {}", "and phases {}"
    for name, each in zip(("plain", "tuned", "four", "phases"), words, strict=True):
        assert each.format(told(found[name])) in INGREDIENTS.replace(" points (", " (")
    for other, words in ("tuned", "have {}"), ("four", "differ by {}"):
        assert words.format(gained(found["phases"], found[other], "")) in INGREDIENTS


def test_noise_and_trace_of_a_late_pay_are_what_scipy_says():
    last = scores_of("pay_noise", (10, 12, 14), "evaluation")
    last |= scores_of("pay_trace", (10, 12, 14), "evaluation")
    words = "have {}", "paid at once {}", "paid late {}", "{}, *"
    for name, each in zip(("noisy_pay", "at_once", "late", "lagged"), words, strict=True):
        assert each.format(told(last[name])) in INGREDIENTS.replace(" points (", " (")
    assert f"gains {gained(last['seen_last'], last['late'], '')}, not" in INGREDIENTS


def test_a_rounding_and_a_seed_are_what_scipy_says():
    page = (PROJECT / "doc" / "results.md").read_text()
    third, sixth = (np.array([*scores_of("rounding", [k]).values()]).T for k in (3, 6))  # by seed
    own = third.var(axis=1, ddof=1).mean()
    more = third.mean(axis=1).var(ddof=1) - own / 6  # of seeds without their roundings
    assert third.shape == (6, 6)
    assert f"by {own**0.5:.1f} points (standard deviation), and seeds by {more**0.5:.1f} on" in page
    one = third[np.ptp(third, axis=1).argmax()]
    assert f"scored {one.min():.1f} and {one.max():.1f}. " in page
    found, end = stats.f_oneway(*third), stats.f_oneway(*sixth)
    assert f"(F {found.statistic:.2f}, p {found.pvalue:.3f})" in page
    assert f"between {sixth.min():.1f} and {sixth.max():.1f}, and" in page
    assert f"(p {end.pvalue:.2f})" in page
