"""Scores here of policies that were trained in the Unity build, beside those that they had there.

    python -m research fidelity FOLDER --out checkpoints/fidelity.json

doc/unity.md describes the folder. A policy with the scores of single arms plays the goals that
Unity draws at its first twenty resets; the reset with the highest correlation is the one that was
played there, provided that the others are far below it. `per_arm.json`, like `policies.json`, and
`random_policy_scores.json`, with scores of random torques, may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from reacher import ReacherEnvironment
from reacher.episode import Policy, evaluate_policy, random_torques
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from research.tables import as_markdown

ARMS, EPISODES, RANDOM_EPISODES, RESETS = 20, 10, 100, 20
Entry = Mapping[str, Any]


def read_policies(folder: Path) -> list[tuple[Entry, Policy]]:
    """The entries of a folder's tables, each with its policy, all of them tried once.

    Raises:
        FileNotFoundError, ValueError: a file is missing, or does not hold what it should.
    """
    if not (folder / "policies.json").is_file():
        raise FileNotFoundError(f"no policies.json in {folder}: doc/unity.md says what is needed")
    paths = filter(Path.exists, (folder / "policies.json", folder / "per_arm.json"))
    found = []
    for entry in (entry for path in paths for entry in json.loads(path.read_text())):
        try:
            act = stored_policy(folder / entry["file"], entry["layers"])
            actions = np.asarray(act(np.zeros((ARMS, OBSERVATION_SIZE), np.float32)))
        except (KeyError, ValueError) as error:
            raise ValueError(f"{entry} does not work: {error!r}") from None
        if actions.shape != (ARMS, ACTION_SIZE) or not np.isfinite(actions).all():
            raise ValueError(f"{entry} makes actions {actions.shape}, not ({ARMS}, {ACTION_SIZE})")
        if not {"unity_score", "unity_scores_per_arm"} & set(entry):
            raise ValueError(f"{entry} needs a unity_score or unity_scores_per_arm")
        found.append((entry, act))
    return found


def stored_policy(path: Path, layers: Sequence[str]) -> Policy:
    """A policy in plain NumPy; the module's docstring describes the files."""
    arrays = load_file(path) if path.suffix == ".safetensors" else dict(np.load(path))

    def act(x):
        for layer in layers:
            if layer == "relu":
                x = np.maximum(x, 0)
            elif layer == "tanh":
                x = np.tanh(x)
            elif f"{layer}.running_var" in arrays:  # batch normalization, as in evaluation
                spread = np.sqrt(arrays[f"{layer}.running_var"] + 1e-5)
                x = (x - arrays[f"{layer}.running_mean"]) / spread
                x = x * arrays[f"{layer}.weight"] + arrays[f"{layer}.bias"]
            else:
                x = x @ arrays[f"{layer}.weight"].T + arrays[f"{layer}.bias"]
        return x

    return act


def measured(folder: Path, episodes: int = EPISODES) -> dict[str, Any]:
    """Scores in Unity and here, of trained policies and, where there are any, of random torques."""
    found: dict[str, Any] = {"arms": ARMS, "episodes": episodes, "trained": [], "per_arm": []}
    for entry, act in read_policies(folder):
        source = (entry.get("source") or entry["file"]).split(" ")[0]
        named = {"source": source, "algorithm": entry.get("algorithm")}
        if scores := entry.get("unity_scores_per_arm"):
            compared = compared_by_arm(act, scores, entry.get("unity_seed", 0))
            found["per_arm"].append(named | compared)
            continue
        with ReacherEnvironment(ARMS, seed=0) as environment:
            scores = [
                round(float(evaluate_policy(environment, act).mean()), 3) for _ in range(episodes)
            ]
        unity = {name: entry.get(name) for name in ("unity_score", "unity_episodes")}
        found["trained"].append(named | unity | {"scores": scores})
    path = folder / "random_policy_scores.json"
    if path.exists():
        found["random"] = random_scores(json.loads(path.read_text()))
    return found


def compared_by_arm(act: Policy, unity_scores: Sequence[float], seed: int = 0) -> dict[str, Any]:
    """Scores of each arm in Unity and here, at the reset (from 0 on) of the best correlation."""
    here = scores_by_reset(act, len(unity_scores), seed)
    with np.errstate(invalid="ignore"):  # of a policy that scores the same with all arms
        correlations = [np.corrcoef(unity_scores, scores)[0, 1] for scores in here]
    correlations = np.nan_to_num(correlations)
    reset = int(correlations.argmax())
    return {
        "unity_seed": seed,
        "reset": reset,
        "correlations": correlations.round(3).tolist(),
        "unity": list(unity_scores),
        "here": here[reset].round(2).tolist(),
    }


def scores_by_reset(act: Policy, arms: int, seed: int = 0, resets: int = RESETS) -> np.ndarray:
    """Scores on the goals that Unity draws at its first resets, (resets, arms).

    All resets are played at once: Unity's stream of goals goes on from arm to arm and from reset to
    reset, so the first reset of `resets * arms` arms has the goals of `resets` resets of `arms`.
    """
    with ReacherEnvironment(resets * arms, seed, goals="unity") as environment:
        return evaluate_policy(environment, act).reshape(resets, arms)


def random_scores(unity: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Scores of random torques here, beside those in Unity."""
    policy = random_torques(0)
    with ReacherEnvironment(ARMS, seed=0) as environment:
        arms = np.array([evaluate_policy(environment, policy) for _ in range(RANDOM_EPISODES)])
    return {
        "unity": summary(unity["mean_over_20_arms"], unity["single_arm"]),
        "here": summary(arms.mean(axis=1), arms.ravel()),
    }


def summary(means: Any, single_arms: Any) -> dict[str, Any]:
    """What is said of episodes of random torques: of means over 20 arms, and of single arms."""
    means, single_arms = np.array(means), np.array(single_arms)
    return {
        "episodes": len(means),
        "mean": round(float(means.mean()), 4),
        "standard_deviation": round(float(means.std(ddof=1)), 4),
        "single_arms": len(single_arms),
        "share_at_0": float((single_arms == 0).mean()),
        "mean_of_others": round(float(single_arms[single_arms > 0].mean()), 4),
    }


def table(found: Mapping[str, Any]) -> str:
    """The same policies in Unity and here."""
    lines = [
        (one["source"], one["unity_score"], np.mean(one["scores"])) for one in found["trained"]
    ]
    for entry in found["per_arm"]:
        second, best = np.sort(entry["correlations"])[-2:]
        told = f"{entry['source']}, arm by arm at reset {entry['reset']}; correlation {best:.2f}, "
        told += f"at other resets at most {second:.2f}"
        lines.append((told, np.mean(entry["unity"]), np.mean(entry["here"])))
    if "random" in found:
        unity, here = found["random"]["unity"], found["random"]["here"]
        lines.append(("random torques", unity["mean"], here["mean"]))
    return as_markdown(
        [
            {"policy": name, "Unity": f"{a:.2f}", "here": f"{b:.2f}", "difference": f"{b - a:+.2f}"}
            for name, a, b in lines
        ]
    )
