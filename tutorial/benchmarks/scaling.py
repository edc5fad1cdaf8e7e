"""How time grows with the number of arms and of stored transitions."""

from __future__ import annotations

import numpy as np

from reacher import ReacherEnvironment
from tutorial import notebook
from tutorial.benchmarks import measure, replay
from tutorial.benchmarks.measure import Options, Recorder, Target
from tutorial.report.tables import as_markdown

TITLE = "Scaling"
ARMS = (1, 20, 200, 2000)
TRANSITIONS = (10**4, 10**5, 10**6, 10**7)
EXPLANATION = """\
Time of one decision against the number of arms: the environment alone, and together with the
acting agent (default preset, with noise). Time to draw 128 transitions and set their new
priorities against the number held, as in the row *Prioritized replay*; every row of the memory is
written first, so that it is real memory. *Rows* and *tree* are what they take. The bound for the
replay is that time grows by no more than log N, so by log 10^7 / log 10^4 = 1.75
from 10^4 to 10^7. Counted in steps of the tree it does; what a machine's caches do with it is
measured here. One thread."""


def run(options: Options, recorder: Recorder) -> None:
    """Measure arms and transitions."""
    definitions = notebook.definitions()
    with measure.torch_threads(1):
        for call in decision(definitions, 1).values():  # loads what the first call loads
            call()
        for number in ARMS if not options.quick else ARMS[:2]:
            seconds = measure.time_in_turn(decision(definitions, number), options)
            recorder.put_seconds(seconds, prefix=f"{number} arms, ")
        for number in TRANSITIONS if not options.quick else (10**2, 10**3):
            rows, td_errors = replay.transitions(number)
            call = replay.this_project(rows, td_errors, definitions)
            seconds = measure.time_in_turn({"draw and update": call}, options)["draw and update"]
            leaves = 2 ** int(np.ceil(np.log2(number)))
            recorder.put(
                f"{number} transitions",
                {"seconds": seconds, "rows MB": rows.nbytes / 1e6, "tree MB": 2 * leaves * 8 / 1e6},
            )
            del rows, td_errors, call


def decision(definitions, arms: int):
    """Calls for one decision of so many arms: environment alone, environment and agent."""
    environment = ReacherEnvironment(arms, seed=0)
    first = environment.reset()[environment.brain_names[0]].vector_observations
    settings = definitions.make_hyperparameters("default", {})
    agent = definitions.Agent(
        definitions.OBSERVATION_SCALE, replay.ACTION, arms, settings, np.random.default_rng(0)
    )
    actions = np.random.default_rng(0).uniform(-1, 1, (arms, replay.ACTION))
    seen = [first]

    def both():
        answer = environment.step(agent.act(seen[0].astype(np.float32)))
        seen[0] = answer[environment.brain_names[0]].vector_observations

    return {"environment": lambda: environment.step(actions), "environment and agent": both}


def seconds_by_number(measured, ending: str) -> dict[int, list[float]]:
    """Repetitions in s of the entries '<number> <ending>', by their numbers in order."""
    return {
        int(name.split()[0]): entry["seconds"]
        for name, entry in sorted(measured.items(), key=lambda item: int(item[0].split()[0]))
        if name.partition(" ")[2] == ending
    }


def tables(measured) -> list[str]:
    alone = seconds_by_number(measured, "arms, environment")
    both = seconds_by_number(measured, "arms, environment and agent")
    arms = [
        [f"{n:,}", *(f"{1e3 * measure.median(part[n]):.3f}" for part in (alone, both))]
        for n in alone
    ]
    transitions = []
    for n, seconds in seconds_by_number(measured, "transitions").items():
        low, high = measure.quartiles(seconds)
        sizes = (measured[f"{n} transitions"][part] for part in ("rows MB", "tree MB"))
        transitions.append(
            [
                f"{n:,}",
                f"{1e6 * measure.median(seconds):.1f}",
                f"{1e6 * low:.1f} to {1e6 * high:.1f}",
                *(f"{size:,.1f}" for size in sizes),
            ]
        )
    return [
        as_markdown(["arms", "environment, ms a decision", "with agent, ms a decision"], arms),
        as_markdown(
            [
                "transitions held",
                "draw and update, µs",
                "quartiles, µs",
                "rows, MB",
                "tree, MB",
            ],
            transitions,
        ),
    ]


def targets(measured) -> list[Target]:
    def growth(ending, first, last):
        seconds = seconds_by_number(measured, ending)
        if not {first, last} <= seconds.keys():
            return None
        return measure.median(seconds[last]) / measure.median(seconds[first])

    bound = np.log(TRANSITIONS[-1]) / np.log(TRANSITIONS[0])
    return [
        measure.at_most(
            "Replay, 10^4 to 10^7 transitions: time grows by log N at most, 1.75 times",
            growth("transitions", TRANSITIONS[0], TRANSITIONS[-1]),
            bound,
        ),
        measure.at_most(
            "Environment, 20 to 2,000 arms: time grows linearly at most, 100 times",
            growth("arms, environment", 20, 2000),
            100.0,
        ),
        measure.at_most(
            "Environment and agent, 20 to 2,000 arms: the same",
            growth("arms, environment and agent", 20, 2000),
            100.0,
        ),
    ]
