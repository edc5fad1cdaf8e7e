"""What the museum of bugs shows: its numbers and figures, from `checkpoints/bugs/`.

python -m research.report.bugs    print the table, draw the figures, and fill in doc/bugs.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from reacher.files import write_whole
from research.bugs import BUGS, Bug, is_bug
from research.report.trials import Variant, first_at_30, mean_score, read_plan
from research.symptoms import NUMBERS
from tutorial.figures import COLORS, threshold_line
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.tables import as_markdown, median_and_range

LETTERS = "ABCDEFGHIJKLMNOP"
EARLY = 5  # the episode of the numbers behind the questions
Numbers = Mapping[str, np.ndarray]  # column to (lines,)


def read_numbers() -> dict[str, Numbers]:
    """The table of numbers, variant by variant."""
    table = np.genfromtxt(
        CHECKPOINTS / "bugs" / "numbers.csv", delimiter=",", names=True, dtype=None, encoding=None
    )
    return {
        str(variant): {name: table[name][table["variant"] == variant] for name in table.dtype.names}
        for variant in np.unique(table["variant"])
    }


def at_episode(numbers: Numbers, column: str, episode: int) -> np.ndarray:
    """A column in an episode, one number a seed; 0 stands for the last episode of learning."""
    if episode:
        return numbers[column][numbers["episode"] == episode]
    return np.array(
        [numbers[column][numbers["seed"] == seed][-1] for seed in np.unique(numbers["seed"])]
    )


def without_noise_at_the_end(variant: Variant) -> np.ndarray:
    """The mean of the last three evaluations, one number a seed."""
    evaluations = variant["evaluation"]
    return np.array([row[np.isfinite(row)][-3:].mean() for row in evaluations])


def lowest_late(variant: Variant, column: str) -> np.ndarray:
    """The lowest evaluation from the half of the training on, one number a seed."""
    half = variant[column].shape[1] // 2
    return np.nanmin(variant[column][:, half:], axis=1)


def betraying(name: str, bug: Bug, variants: Mapping, numbers: Mapping) -> str:
    """The number that betrays a bug, of a variant."""
    if bug.number in NUMBERS:
        return median_and_range(at_episode(numbers[name], bug.number, bug.episode))
    return median_and_range(lowest_late(variants[name], bug.number))


def table(variants: Mapping[str, Variant], numbers: Mapping[str, Numbers]) -> str:
    """What each variant reached, medians and ranges over its seeds."""
    head = [
        "variant",
        "first 30, episode",
        "mean of 1-20",
        "without noise at the end",
        "number that betrays it",
        "with the bug",
        "without",
    ]
    lines = []
    for name, bug in BUGS.items():
        variant = variants[name]
        line = [
            bug.title,
            median_and_range(first_at_30(variant)),
            median_and_range(mean_score(20)(variant)),
            median_and_range(without_noise_at_the_end(variant)),
        ]
        if is_bug(name):
            line.append(f"`{bug.number}`")
            line += [betraying(who, bug, variants, numbers) for who in (name, bug.base)]
        lines.append(line + [""] * (len(head) - len(line)))
    return as_markdown(head, lines)


def found(name: str, variants: Mapping[str, Variant], numbers: Mapping[str, Numbers]) -> str:
    """What the runs of a bug showed beside those of its base, as sentences."""
    bug, pair = BUGS[name], (name, BUGS[name].base)
    measures = (first_at_30, mean_score(20), without_noise_at_the_end)
    first, mean, end = (
        [median_and_range(measure(variants[who])) for who in pair] for measure in measures
    )
    sentences = [
        f"First score of 30: episode {first[0]} with it, and {first[1]} without it.",
        f"Mean score of episodes 1 to 20: {mean[0]} with it, and {mean[1]} without it.",
        f"Score without noise at the end: {end[0]} with it, and {end[1]} without it.",
    ]
    if bug.number:
        meaning = NUMBERS.get(bug.number, "lowest score of an arm without noise")
        when = f"in episode {bug.episode}" if bug.episode else "in the last episode of learning"
        when = when if bug.number in NUMBERS else "in the second half"
        betrays, usual = (betraying(who, bug, variants, numbers) for who in pair)
        sentences.append(
            f"`{bug.number}` ({meaning}) {when}: {betrays} with it, and {usual} without it."
        )
    return " ".join(sentences)


def answers_to_questions(
    variants: Mapping[str, Variant], numbers: Mapping[str, Numbers]
) -> dict[str, str]:
    """The numbers behind the three questions that learners ask most."""
    rises = steps = 0
    default = numbers["default"]
    for seed in np.unique(default["seed"]):
        change = np.diff(default["Q"][default["seed"] == seed])
        rises, steps = rises + int((change < 0).sum()), steps + len(change)

    def of(name: str, column: str, episode: int) -> str:
        return median_and_range(at_episode(numbers[name], column, episode))

    def lowest(name: str) -> str:
        return median_and_range(lowest_late(variants[name], "evaluation"))

    stale = {
        column: f"With stale gradients it was {of('stale_gradients', column, EARLY)} "
        f"in episode {EARLY}."
        for column in ("Q", "saturation")
    }
    return {
        "question: loss": (
            f"In the runs of the default the actor's loss rose from one episode to the next "
            f"in {rises} of {steps} cases while the agent learned. Q was "
            f"{of('default', 'Q', EARLY)} in episode {EARLY} and {of('default', 'Q', 0)} in the "
            f"last episode of learning. {stale['Q']}"
        ),
        "question: limits": (
            f"Share of torques beyond 0.99 in episode {EARLY}: "
            f"{of('default', 'saturation', EARLY)} for the default, "
            f"{of('saturated_actor', 'saturation', EARLY)} for the saturated actor. In the "
            f"default's last episode of learning it was {of('default', 'saturation', 0)}. "
            f"{stale['saturation']}"
        ),
        "question: forgetting": (
            f"Lowest evaluation in the second half of the training: {lowest('no_end')} without an "
            f"end of learning, {lowest('default')} with it."
        ),
    }


def quiz_order() -> list[str]:
    """The bugs in the order of the quiz, the same in every process."""
    names = [name for name in BUGS if is_bug(name)]
    return [names[k] for k in np.random.default_rng(4).permutation(len(names))]


def draw(
    variants: Mapping[str, Variant], titles: Mapping[str, str], same_base: bool = False
) -> Figure:
    """Training scores of variants, one panel each, over the range of the runs without the bug.

    Args:
        titles: of the panels by variant, in their order.
        same_base: show the range of `default` in every panel, since another one would betray bugs.
    """
    columns = 4
    rows = -(-len(titles) // columns)
    figure, panels = plt.subplots(
        rows,
        columns,
        figsize=(2.6 * columns, max(2.8, 2.2 * rows)),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=False):
        base = variants["default" if same_base else BUGS[name].base]
        episodes = base["episode"][0]
        axes.fill_between(
            episodes,
            base["score"].min(axis=0),
            base["score"].max(axis=0),
            color="0.85",
            linewidth=0,
            label="range without the bug",
        )
        axes.plot(variants[name]["episode"].T, variants[name]["score"].T, color=COLORS["score"])
        for line in axes.lines:
            line.set_linewidth(0.8)
        threshold_line(axes)
        axes.set_title(title, fontsize=9)
        axes.set(xscale="log", xlim=(1, episodes[-1]), ylim=(0, 41))
        axes.set_xticks([1, 2, 5, 10, 20, 50], [1, 2, 5, 10, 20, 50])
        axes.minorticks_off()
    for axes in panels.flat[len(titles) :]:
        axes.axis("off")
    for axes in panels.flat[max(0, len(titles) - columns) : len(titles)]:
        axes.tick_params(labelbottom=True)  # also where the panel below is empty
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=2, frameon=False, fontsize=8)
    figure.supxlabel("episode", fontsize=10)
    figure.supylabel("training score (sum of rewards)", fontsize=10)
    return figure


def curves(*names: str) -> Figure:
    """Training scores with these bugs, over the range of the runs without each, as they are kept.

    Args:
        names: of BUGS.
    """
    return draw(read_plan("bugs"), {name: BUGS[name].title for name in names})


def fill(page: str, texts: Mapping[str, str]) -> str:
    """Put texts between the comments `<!-- name -->` and `<!-- /name -->` of a page.

    Raises:
        ValueError: a comment is not there exactly once; says which.
    """
    for name, text in texts.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page must hold {begin} and {end} exactly once each")
        head, rest = page.split(begin)
        tail = rest.split(end)[1]
        page = f"{head}{begin}\n{text}\n{end}{tail}"
    return page


def texts(variants: Mapping[str, Variant], numbers: Mapping[str, Numbers]) -> dict[str, str]:
    """All that the runs fill in, by the name of its place in doc/bugs.md."""
    order = quiz_order()
    letters = zip(LETTERS, order, strict=False)
    return {
        "table": table(variants, numbers),
        "figure": "![Curves of each bug over the range of the runs without it](bugs.png)",
        "quiz": "![The curves of the bugs in another order, without titles](bugs_quiz.png)",
        "answers": ", ".join(f"{letter}: {BUGS[name].title.lower()}" for letter, name in letters)
        + ".",
        **answers_to_questions(variants, numbers),
        **{name: found(name, variants, numbers) for name in shown()},
    }


def shown() -> Sequence[str]:
    """The variants with a section of their own: the bugs, and the repair of one."""
    return [name for name in BUGS if is_bug(name) or name == "crossq"]


def main() -> None:
    variants, numbers = read_plan("bugs"), read_numbers()
    order = quiz_order()
    figures = {
        "bugs.png": curves(*shown()),
        "bugs_quiz.png": draw(variants, dict(zip(order, LETTERS, strict=False)), True),
    }
    for file, figure in figures.items():
        figure.savefig(DOC / file, dpi=110, metadata={"Software": None})
        plt.close(figure)
    filled = texts(variants, numbers)
    page = DOC / "bugs.md"
    write_whole(page, fill(page.read_text(), filled).encode())
    print(filled["table"])


if __name__ == "__main__":
    main()
