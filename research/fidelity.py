"""Scores here of policies that were trained in the Unity build, beside those that they had there.

    python -m research.fidelity FOLDER

plays each policy of a folder and prints a table. The policies that the report speaks of belong to
others and are not part of this repository; doc/unity.md says how to do it with your own. The folder
holds `policies.json`, a list of

    {"file": "actor.npz", "layers": ["fc1", "relu", "fc2", "relu", "fc3", "tanh"],
     "unity_score": 38.9, "unity_episodes": 1, "source": "my notebook", "algorithm": "DDPG"}

of which `file`, `layers` and a score are needed. There are two kinds of score:

- `unity_score` is the mean of all arms and episodes. Such a policy plays ten episodes of 20 arms
  here, on goals of this environment.
- `unity_scores_per_arm` is a list of the scores of one episode, one for each arm. Such a policy
  plays the goals that Unity draws with `unity_seed` (0 if it is left out), at each of the first
  twenty resets. The reset of the highest correlation between the two lists of scores is the one
  that was played in Unity, provided that the others are far below it.

Entries of `per_arm.json`, a list of the same form which may be missing, are added.

A policy's file is `.npz` or `.safetensors`: weights by the names of PyTorch's `state_dict`.
`layers` are in the order of their use: names of linear or batch normalization layers, `relu` and
`tanh`.

`random_policy_scores.json`, which may be missing, has scores of random torques in Unity:
`mean_over_20_arms` and `single_arm`, a list each. With `--out checkpoints/fidelity.json` the
measurements are written for the report.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, model_validator
from safetensors.numpy import load_file

from reacher import ReacherEnvironment
from reacher.episode import Policy, evaluate_policy, random_torques
from reacher.files import write_whole
from reacher.goals import MAX_UNITY_SEED
from reacher.physics import MAX_AGENTS
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from tutorial.tables import as_markdown

TABLE, PER_ARM, RANDOM = "policies.json", "per_arm.json", "random_policy_scores.json"
ARMS, EPISODES, RANDOM_EPISODES, RESETS = 20, 10, 100, 20
FEWEST_ARMS = 5  # whose scores are compared; a correlation of fewer says little

T = TypeVar("T")
Scores = Annotated[list[float], Field(min_length=1)]


class Entry(BaseModel):
    """A policy of a table, as the module's docstring describes it."""

    file: str
    layers: list[str]
    source: str = ""
    algorithm: str | None = None
    unity_score: float | None = None
    unity_episodes: int | None = None
    unity_scores_per_arm: (
        Annotated[list[float], Field(min_length=FEWEST_ARMS, max_length=MAX_AGENTS // RESETS)]
        | None
    ) = None
    unity_seed: Annotated[int, Field(ge=0, le=MAX_UNITY_SEED)] = 0

    @model_validator(mode="after")
    def check_scores(self) -> Entry:
        """Raise ValueError where there is no score, or nothing to compare."""
        if self.unity_score is None and self.unity_scores_per_arm is None:
            raise ValueError("a unity_score or unity_scores_per_arm is needed")
        if self.unity_scores_per_arm and len(set(self.unity_scores_per_arm)) == 1:
            raise ValueError("unity_scores_per_arm must not be all the same")
        return self


class RandomScores(BaseModel):
    """Scores of random torques in Unity."""

    mean_over_20_arms: Scores
    single_arm: Scores


def parsed(path: Path, kind: type[T]) -> T:
    """What a JSON file holds, or a ValueError that names the file and what is wrong in it."""
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_policies(folder: Path) -> list[tuple[Entry, Policy]]:
    """The entries of a folder's tables, each with its policy, all of them tried once.

    Raises:
        FileNotFoundError: the table or a policy is missing.
        ValueError: the table, or a file, does not hold what it should.
    """
    table = folder / TABLE
    if not table.is_file():
        raise FileNotFoundError(
            f"no {table}: the policies and a table of their scores in Unity "
            "are needed, see doc/unity.md"
        )
    entries: list[Entry] = []
    for path in filter(Path.exists, (table, folder / PER_ARM)):
        entries += parsed(path, list[Entry])
    return [(entry, tried_policy(folder / entry.file, entry.layers)) for entry in entries]


def tried_policy(path: Path, layers: list[str]) -> Policy:
    """The policy of a file, if it makes actions of observations."""
    if not path.is_file():
        raise FileNotFoundError(f"no {path}, which the table names")
    act = stored_policy(path, layers)
    try:
        actions = np.asarray(act(np.zeros((ARMS, OBSERVATION_SIZE), np.float32)))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} does not work with layers {layers}: {error}") from None
    if actions.shape != (ARMS, ACTION_SIZE) or not np.isfinite(actions).all():
        raise ValueError(
            f"{path} must make finite actions (arms, {ACTION_SIZE}) of observations "
            f"(arms, {OBSERVATION_SIZE}), but made {actions.shape}; its layers are {layers}"
        )
    return act


def stored_policy(path: Path, layers: list[str]) -> Policy:
    """A policy in plain NumPy; the module's docstring describes the files.

    Raises:
        ValueError: a file of another kind.
    """
    if path.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"{path} must be .npz or .safetensors")
    try:
        arrays = load_file(path) if path.suffix == ".safetensors" else dict(np.load(path))
    except Exception as error:  # of zip files, of pickles, of safetensors
        raise ValueError(f"{path} holds no weights that can be read: {error}") from error

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


def measured(folder: Path, episodes: int = EPISODES) -> dict:
    """Scores in Unity and here, of trained policies and, where there are any, of random torques."""
    policies, path = read_policies(folder), folder / RANDOM
    unity_random = parsed(path, RandomScores) if path.exists() else None
    trained, per_arm = [], []
    for entry, act in policies:
        named = {
            "source": (entry.source or entry.file).split(" ")[0],
            "algorithm": entry.algorithm,
        }
        if entry.unity_scores_per_arm:
            compared = compared_by_arm(act, entry.unity_scores_per_arm, entry.unity_seed)
            per_arm.append(named | compared)
            continue
        with ReacherEnvironment(ARMS, seed=0) as environment:
            scores = [
                round(float(evaluate_policy(environment, act).mean()), 3) for _ in range(episodes)
            ]
        unity = {"unity_score": entry.unity_score, "unity_episodes": entry.unity_episodes}
        trained.append(named | unity | {"scores": scores})
    found = {"arms": ARMS, "episodes": episodes, "trained": trained, "per_arm": per_arm}
    if unity_random:
        found["random"] = random_scores(unity_random)
    return found


def compared_by_arm(act: Policy, unity_scores: list[float], seed: int = 0) -> dict:
    """Each arm's score in Unity and here, on the same goals, and at which reset they are the same.

    Args:
        act: the policy.
        unity_scores: one for each arm, of one episode in Unity.
        seed: that the Unity build was opened with.

    Returns:
        `reset`, counted from 0, at which the scores here correlate best; the `correlations` at all
        resets; the scores in `unity` and `here`, at that reset.
    """
    here = scores_by_reset(act, len(unity_scores), seed)
    with np.errstate(invalid="ignore"):  # of a policy that scores the same with all arms
        correlations = [np.corrcoef(unity_scores, scores)[0, 1] for scores in here]
    correlations = np.nan_to_num(correlations)
    reset = int(correlations.argmax())
    return {
        "unity_seed": seed,
        "reset": reset,
        "correlations": correlations.round(3).tolist(),
        "unity": unity_scores,
        "here": here[reset].round(2).tolist(),
    }


def scores_by_reset(act: Policy, arms: int, seed: int = 0, resets: int = RESETS) -> np.ndarray:
    """Scores on the goals that Unity draws at its first resets, (resets, arms).

    All resets are played at once: Unity's stream of goals goes on from arm to arm and from reset to
    reset, so the first reset of `resets * arms` arms has the goals of `resets` resets of `arms`.
    """
    with ReacherEnvironment(resets * arms, seed, goals="unity") as environment:
        return evaluate_policy(environment, act).reshape(resets, arms)


def random_scores(unity: RandomScores) -> dict:
    """Scores of random torques here, beside those in Unity."""
    policy = random_torques(0)
    with ReacherEnvironment(ARMS, seed=0) as environment:
        arms = np.array([evaluate_policy(environment, policy) for _ in range(RANDOM_EPISODES)])
    return {
        "unity": summary(unity.mean_over_20_arms, unity.single_arm),
        "here": summary(arms.mean(axis=1), arms.ravel()),
    }


def summary(means, single_arms) -> dict:
    """What is said of episodes of random torques: of means over 20 arms, and of single arms."""
    means, single_arms = np.array(means), np.array(single_arms)
    touching = single_arms[single_arms > 0]
    return {
        "episodes": len(means),
        "mean": round(float(means.mean()), 4),
        "standard_deviation": round(float(means.std(ddof=1)), 4),
        "single_arms": len(single_arms),
        "share_at_0": float((single_arms == 0).mean()),
        "mean_of_others": round(float(touching.mean()), 4),
    }


def fidelity_table(fidelity: dict) -> str:
    """The same policies in Unity and here."""
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help=f"of policies, with {TABLE}")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="of each policy")
    parser.add_argument("--out", type=Path, help="JSON file to write the measurements into")
    options = parser.parse_args(arguments)
    if options.episodes < 1:
        parser.error(f"--episodes must be at least 1, not {options.episodes}")
    if options.out and not options.out.absolute().parent.is_dir():
        parser.error(f"--out: there is no folder {options.out.absolute().parent}")
    try:
        found = measured(options.folder, options.episodes)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(fidelity_table(found))
    for one in found["per_arm"]:
        second, best = np.sort(one["correlations"])[-2:]
        print(
            f"{one['source']}: the arms score most alike at reset {one['reset']} of seed "
            f"{one['unity_seed']}, correlation {best:.2f}; at other resets at most {second:.2f}"
        )
    if options.out:
        write_whole(options.out, (json.dumps(found, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
