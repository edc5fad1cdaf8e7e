"""Scores here of policies that others trained in the Unity build.

    python -m workshop.experiments.fidelity

It writes checkpoints/fidelity.json, from which the notebook draws its figure. The policies are not
part of this repository; without the folder that holds them, nothing can be measured. It has
`policies.json`, a list of file, layers, source, algorithm, unity_score and unity_episodes; the .npz
files that it names, with the weights of each layer; and `random_policy_scores.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from reacher import ReacherEnvironment
from workshop.paths import PROJECT

POLICIES = PROJECT.parent / "shared" / "unity_policies"
KEPT = PROJECT / "checkpoints" / "fidelity.json"
ARMS, EPISODES, RANDOM_EPISODES = 20, 10, 100


def stored_policy(path: Path, layers: list[str]):
    """A policy in plain NumPy: observations (arms, 33) to actions (arms, 4)."""
    arrays = dict(np.load(path))

    def act(x):
        for layer in layers:
            if layer == "relu":
                x = np.maximum(x, 0)
            elif layer == "tanh":
                x = np.tanh(x)
            elif f"{layer}.running_var" in arrays:  # batch normalisation, as in evaluation
                spread = np.sqrt(arrays[f"{layer}.running_var"] + 1e-5)
                x = (x - arrays[f"{layer}.running_mean"]) / spread
                x = x * arrays[f"{layer}.weight"] + arrays[f"{layer}.bias"]
            else:
                x = x @ arrays[f"{layer}.weight"].T + arrays[f"{layer}.bias"]
        return x

    return act


def episode_scores(environment, act) -> np.ndarray:
    """Sum of rewards of one whole episode, (arms,)."""
    [brain] = environment.brain_names
    answer = environment.reset()[brain]
    scores = np.zeros(len(answer.agents))
    while not any(answer.local_done):
        answer = environment.step(act(answer.vector_observations.astype(np.float32)))[brain]
        scores += answer.rewards
    return scores


def measured(policies: Path) -> dict:
    """Scores in both worlds, of trained policies and of random torques."""
    trained = []
    for policy in json.loads((policies / "policies.json").read_text()):
        act = stored_policy(policies / policy["file"], policy["layers"])
        with ReacherEnvironment(ARMS, seed=0) as environment:
            scores = [round(float(episode_scores(environment, act).mean()), 3)
                      for _ in range(EPISODES)]
        trained.append({"source": policy["source"].split(" ")[0], "algorithm": policy["algorithm"],
                        "unity_score": policy["unity_score"],
                        "unity_episodes": policy["unity_episodes"], "scores": scores})
    generator = np.random.default_rng(0)
    with ReacherEnvironment(ARMS, seed=0) as environment:
        arms = np.array([episode_scores(environment, lambda seen: generator.standard_normal(
            (ARMS, 4)).clip(-1, 1)) for _ in range(RANDOM_EPISODES)])
    unity = json.loads((policies / "random_policy_scores.json").read_text())
    return {"arms": ARMS, "episodes": EPISODES, "trained": trained,
            "random": {"unity": summary(unity["mean_over_20_arms"], unity["single_arm"]),
                       "here": summary(arms.mean(axis=1), arms.ravel()),
                       "means_here": arms.mean(axis=1).round(4).tolist()}}


def summary(means, single_arms) -> dict:
    """What is said of episodes of random torques: of means over 20 arms, and of single arms."""
    means, single_arms = np.array(means), np.array(single_arms)
    touching = single_arms[single_arms > 0]
    return {"episodes": len(means), "mean": round(float(means.mean()), 4),
            "standard_deviation": round(float(means.std(ddof=1)), 4),
            "single_arms": len(single_arms), "share_at_0": float((single_arms == 0).mean()),
            "mean_of_others": round(float(touching.mean()), 4)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", type=Path, default=POLICIES)
    options = parser.parse_args(arguments)
    if not (options.policies / "policies.json").exists():
        print(f"no {options.policies / 'policies.json'}: the policies trained in Unity are needed",
              file=sys.stderr)
        return 2
    KEPT.write_text(json.dumps(measured(options.policies), indent=1) + "\n")
    print(KEPT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
