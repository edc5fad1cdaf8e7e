"""Wrong input: every parameter and every hyperparameter, generated from what they declare."""

from __future__ import annotations

import ast
import csv
import json
import math
import pickle
import types
import typing
from fractions import Fraction
from pathlib import Path

import annotated_types
import nbformat
import numpy as np
import pytest

import small_training
from reacher.physics import MAX_AGENTS
from tutorial import run_files
from tutorial.environments import open_environment
from tutorial.notebook import definitions
from tutorial.parameters import Parameters, check_parameters
from tutorial.paths import NOTEBOOK
from tutorial.presets import PRESETS
from tutorial.run_files import run_folder
from tutorial.scores import read_runs, read_scores

HUGE = 10**5000  # Python refuses to write so many digits
DEFINITIONS = definitions()
MODELS = {"hyperparameters": DEFINITIONS.Hyperparameters, "parameters": Parameters}
PARAMETERS = {
    "preset": "default",
    "seed": 0,
    "num_agents": 2,
    "max_episodes": 1,
    "stop_when_solved": True,
    "env_location": "",
    "goal_size": 5.0,
    "goal_speed": 1.0,
    "engine": "torch",
    "out_dir": "runs",
    "overrides": {},
    "train": True,
    "resume": False,
    "save_every": 1,
    "evaluate_every": 5,
    "keep_state": False,
    "tensorboard": False,
    "live": True,
    "test_episodes": 1,
}
COMPANIONS = {  # what a value at its limit needs beside it
    "replay_capacity": {"batch_size": 2, "learning_starts": 1},
}


def build(model, **values):
    """What the notebook does with these parameters or hyperparameters."""
    if model == "parameters":
        check_parameters(PARAMETERS | values)
        return None
    return DEFINITIONS.make_hyperparameters("default", values)


class Field(typing.NamedTuple):
    """What a field of a model declares.

    Attributes:
        kinds: types or literal values that are allowed.
        limits: constraints of its numbers, lengths and elements.
    """

    model: str
    name: str
    kinds: tuple
    limits: tuple


def fields():
    for model, definition in MODELS.items():
        for name, field in definition.model_fields.items():
            yield Field(model, name, *declared(field.annotation, field.metadata))


def declared(annotation, metadata=()):
    """Kinds and limits of an annotation."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return arguments, ()
    if origin is typing.Annotated:
        inner = [part for extra in arguments[1:] for part in getattr(extra, "metadata", [extra])]
        return declared(arguments[0], (*metadata, *inner))
    if origin in (typing.Union, types.UnionType):
        parts = [declared(part, metadata) for part in arguments]
        return sum((kinds for kinds, _ in parts), ()), tuple(metadata)
    if origin is tuple:
        return (tuple,), (*metadata, declared(arguments[0])[1])
    return (origin or annotation,), tuple(metadata)


def limit(field, kind):
    """The value of a limit of this kind, such as annotated_types.Ge, or None."""
    values = [
        getattr(each, kind.__name__.lower()) for each in field.limits if isinstance(each, kind)
    ]
    return values[0] if values else None


def at_limits(field):
    """The smallest and the largest values that are allowed."""
    if int in field.kinds or float in field.kinds:
        number = int if int in field.kinds else float
        for inclusive, exclusive, inwards in (
            (annotated_types.Ge, annotated_types.Gt, math.inf),
            (annotated_types.Le, annotated_types.Lt, -math.inf),
        ):
            if limit(field, inclusive) is not None:
                yield number(limit(field, inclusive))
            elif limit(field, exclusive) is not None:
                yield math.nextafter(limit(field, exclusive), inwards)
    elif tuple in field.kinds:
        ends = [each for each in field.limits[-1] if hasattr(each, "ge") or hasattr(each, "le")]
        low, high = (getattr(each, name) for each, name in zip(ends, ("ge", "le"), strict=True))
        longest = next(each.max_length for each in field.limits if hasattr(each, "max_length"))
        yield from ((low,), (high,), [low] * longest)
    elif bool in field.kinds:
        yield from (True, False)
    elif str in field.kinds:
        yield from ("x", Path("x"))[: 1 + (len(field.kinds) > 1)]
    elif dict not in field.kinds:
        yield from field.kinds
    if type(None) in field.kinds:
        yield None


def beyond_limits(field):
    """The nearest values that are not allowed, and how the message names the limit."""
    number = int if int in field.kinds else float
    for kind, outwards in (
        (annotated_types.Ge, -math.inf),
        (annotated_types.Gt, -math.inf),
        (annotated_types.Le, math.inf),
        (annotated_types.Lt, math.inf),
    ):
        value = limit(field, kind)
        if value is None:
            continue
        step = int(math.copysign(1, outwards))
        yield value + step if number is int else math.nextafter(value, outwards), str(value)
        yield number(value + 1000 * step), str(value)
        if number is int:
            yield step * HUGE, str(value)
        if kind in (annotated_types.Gt, annotated_types.Lt):
            yield number(value), str(value)
            if value == 0:
                yield -0.0, str(value)


def of_wrong_types(field):
    """Values of other types, and how the message says what is allowed."""
    if int in field.kinds:
        for value in (
            True,
            False,
            "3",
            "",
            3.0,
            2.5,
            math.nan,
            math.inf,
            [],
            [3],
            {},
            b"3",
            3j,
            np.int64(3),
            np.float64(3),
            np.bool_(True),
            Fraction(3),
            object(),
        ):
            yield value, "valid integer"
    elif float in field.kinds:
        for value in (True, False, "0.1", "", [], [0.1], {}, b"1", 1j, HUGE, -HUGE, object()):
            yield value, "valid number"
        for value in (math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf")):
            yield value, "finite number"
    elif tuple in field.kinds:
        for value in (3, "8", "", {}, {8}, None, 8.5, np.array([8, 8]), object()):
            yield value, "valid tuple"
        for element in (0, -1, 4097, HUGE, True, 8.0, "8", None, [8], math.nan, np.int64(8)):
            yield (
                (8, element),
                "integer"
                if not isinstance(element, int) or isinstance(element, bool)
                else "than or equal to",
            )
        for value in ((), []):
            yield value, "at least 1"
        yield (8,) * 9, "at most 8"
    elif bool in field.kinds:
        for value in (0, 1, "true", "", 1.0, None, [], {}, np.bool_(True), object()):
            yield value, "valid boolean"
    elif dict in field.kinds:
        for value in (None, [], "n_step", 3, [("n_step", 5)], object()):
            yield value, "valid dictionary"
    elif str in field.kinds:
        for value in (None, 3, 3.0, True, [], ["x"], {}, b"x", math.nan, object()):
            yield value, "valid string"
        if field.name in ("preset", "out_dir"):
            yield "", "at least 1 character"
    else:
        text = field.kinds[0]
        for value in (
            "",
            text.upper(),
            f" {text}",
            f"{text}s",
            text[:-1],
            0,
            True,
            None,
            [text],
            {},
            b"x",
            math.nan,
            object(),
        ):
            yield value, text
    if type(None) not in field.kinds and (int in field.kinds or float in field.kinds):
        yield None, "valid integer" if int in field.kinds else "valid number"


FIELDS = list(fields())


def seen_in(message, value):
    """Whether an error message shows a value, or, of a tuple, its last element."""
    shown = [value, value[-1]] if isinstance(value, tuple) and value else [value]
    if isinstance(value, list):
        shown.append(tuple(value))  # lists of sizes become tuples before they are checked
    for each in shown:
        try:
            text = repr(each)
        except ValueError:  # too many digits
            return "unprintable" in message or "thousands of digits" in message
        if text in message or text[:15] in message:
            return True
    return False


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_bad_values_are_named_with_what_is_allowed(field):
    for value, allowed in (*beyond_limits(field), *of_wrong_types(field)):
        try:
            build(field.model, **{field.name: value})
        except ValueError as error:
            message = str(error)
        else:
            pytest.fail(f"{field.name} = {value!r} was taken")
        assert field.name in message and allowed in message, (type(value), message)
        assert seen_in(message, value), (type(value), message)
        assert len(message) < 2_000, message


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_values_at_the_limits_are_taken(field):
    """As they are, and when they come back from a file."""
    for value in at_limits(field):
        if field.model == "parameters":
            build("parameters", **{field.name: value})
            continue
        beside = COMPANIONS.get(field.name, {})
        settings = DEFINITIONS.Hyperparameters(**{field.name: value} | beside)
        assert getattr(settings, field.name) == (tuple(value) if isinstance(value, list) else value)
        text = json.dumps(settings.model_dump())
        assert DEFINITIONS.Hyperparameters(**json.loads(text)) == settings


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if int in field.kinds], ids=lambda field: field.name
)
def test_a_huge_number_is_an_error_at_once(field):
    """And not later, where it is written into a file, or after years of gradient steps."""
    with pytest.raises(ValueError, match=field.name):
        build(field.model, **{field.name: HUGE})


LARGE = {
    "actor_hidden",
    "critic_hidden",
    "batch_size",
    "replay_capacity",
    "actor_learning_rate",
    "critic_learning_rate",
    "gradient_steps",
    "anneal_gradient_steps",
}  # too slow, or sure to diverge


@pytest.mark.parametrize(
    "field",
    [field for field in FIELDS if field.model == "hyperparameters" and field.name not in LARGE],
    ids=lambda field: field.name,
)
def test_settings_at_their_limits_train(notebook, tmp_path, monkeypatch, field):
    monkeypatch.setattr(small_training, "DECISIONS", 8)
    small_training.shrink(monkeypatch.setattr)
    for number, value in enumerate(at_limits(field)):
        overrides = COMPANIONS.get(field.name, {}) | {field.name: value}
        agent = small_training.train(notebook, tmp_path / str(number), episodes=2, **overrides)
        assert agent.env_steps == 2 * 8


# ------------------------------------------------------------------------------------ wrong names


def misspelt(name):
    """The name with a letter less, a letter twice, two letters exchanged, and in other ways."""
    middle = len(name) // 2
    return {
        name[:-1],
        name[1:],
        name + "s",
        name[:middle] + name[middle - 1 :],
        name.upper(),
        name.replace("_", ""),
        name.replace("_", "-"),
        f" {name}",
        f"{name} ",
        name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :],
    } - {name}


@pytest.mark.parametrize(
    "field",
    [field for field in FIELDS if field.model != "parameters"],
    ids=lambda field: field.name,
)
def test_misspelt_names_are_errors(field):
    known = set(MODELS[field.model].model_fields)
    for name in misspelt(field.name) - known:
        with pytest.raises(ValueError) as error:  # whatever its value
            build(field.model, **{name: next(iter(at_limits(field)), 0)})
        assert repr(name) in str(error.value) or f"{name} = " in str(error.value), name


@pytest.mark.parametrize(
    "preset", ["", "Default", "default ", "sac", None, 3, True, [], {}, ("default",), math.nan]
)
def test_an_unknown_preset_is_an_error_that_names_all(preset):
    with pytest.raises(ValueError, match="unknown preset") as error:
        DEFINITIONS.make_hyperparameters(preset, {})
    assert repr(preset) in str(error.value)
    assert all(name in str(error.value) for name in PRESETS)


@pytest.mark.parametrize("overrides", [None, [], "n_step", 3, {3: 1}, {None: 1}, {("n_step",): 1}])
def test_overrides_that_are_none(overrides):
    with pytest.raises(ValueError, match="must be a dict|unknown hyperparameter"):
        DEFINITIONS.make_hyperparameters("default", overrides)


@pytest.mark.parametrize(
    "overrides, words",
    [
        ({"replay_capacity": 127}, ["batch_size", "replay_capacity"]),
        ({"learning_starts": 1_000_001}, ["learning_starts", "replay_capacity"]),
    ],
)
def test_settings_that_contradict_each_other(overrides, words):
    with pytest.raises(ValueError) as error:
        DEFINITIONS.make_hyperparameters("default", overrides)
    assert all(word in str(error.value) for word in words)


# ---------------------------------------------------------------------------- the parameters' cell


def parameters_cell():
    """Names and values of the notebook's cell of parameters."""
    (cell,) = [
        cell
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if "parameters" in cell.metadata.get("tags", ())
    ]
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cell.source).body
    }


def test_the_notebook_checks_all_its_parameters():
    values = parameters_cell()
    check_parameters(values)
    assert list(values) == list(Parameters.model_fields) == list(PARAMETERS)


def test_several_wrong_parameters_are_all_named():
    wrong = {"seed": -1, "train": "no", "out_dir": 7}
    with pytest.raises(ValueError) as error:
        check_parameters(PARAMETERS | wrong)
    assert all(f"{name} = {value!r}" in str(error.value) for name, value in wrong.items())


def test_a_parameter_that_is_missing_is_named():
    for name in PARAMETERS:
        with pytest.raises(ValueError, match=name):
            check_parameters({key: value for key, value in PARAMETERS.items() if key != name})


@pytest.mark.parametrize(
    "name, value", [("overrides", {"n_step": 5}), ("resume", True), ("overrides", {"n_step": HUGE})]
)
def test_parameters_without_effect_are_errors(name, value):
    with pytest.raises(ValueError, match=f"{name} = .* has no effect with train = False"):
        check_parameters(PARAMETERS | {"train": False, name: value})


def test_the_largest_number_of_arms_is_the_environments(tmp_path):
    (field,) = [field for field in FIELDS if field.name == "num_agents"]
    assert max(at_limits(field)) == MAX_AGENTS
    for wrong in (0, MAX_AGENTS + 1):
        with pytest.raises(ValueError, match=f"num_agents must be from 1 to {MAX_AGENTS}"):
            open_environment("", wrong)


# -------------------------------------------------------------------------- folders and locations


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    "below",
    ["file", "file/below", "n" * 300, "deep/" * 1_000, "n" * 5_000, "with\0zero"],
    ids=lambda name: name[:10] + str(len(name)),
)
def test_a_folder_that_cannot_be_made(notebook, tmp_path, below, resume):
    """The superuser may write anywhere, so these cannot be made by anyone."""
    (tmp_path / "file").write_text("mine")
    folder = run_folder(tmp_path / below, "default", 0)
    with pytest.raises(ValueError, match="cannot write into .*choose another out_dir") as error:
        notebook.train_agent(None, small_training.make_agent(notebook), folder, 1, resume=resume)
    message = str(error.value)
    assert str(tmp_path) in message and below[:10] in message and len(message) < 1_000
    assert message.count(below[:100]) <= 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_where_nothing_can_be_written(tmp_path, monkeypatch):
    def refuse(path, content):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(run_files, "write_whole", refuse)
    with pytest.raises(ValueError, match="cannot write into .*Permission denied.*another out_dir"):
        run_files.begin_run(tmp_path / "run", {})


@pytest.mark.parametrize(
    "location, words",
    [
        ("nowhere", "does not exist"),
        (Path("nowhere"), "does not exist"),
        (NOTEBOOK, "no.* Unity"),
        ("gymnasium:", "must name an environment"),
        ("gymnasium:Nope-v0", "'Nope-v0'"),
        ("gymnasium:CartPole-v1", "only continuous actions"),
        ("gymnasium", "does not exist"),
        ("Gymnasium:Pendulum-v1", "does not exist"),
    ],
)
def test_an_environment_that_there_is_not(location, words):
    with pytest.raises(ValueError, match=words):
        open_environment(location, 2, 0)


# -------------------------------------------------------------------------------------- score files

HEADER = "episode,score,min,max,seconds\n"
LINES = "1,0.5,0.1,0.9,2.0\n2,1.5,1.1,1.9,4.0\n"
UNREADABLE = {
    "empty": b"",
    "only_a_header": HEADER.encode(),
    "cut": (HEADER + LINES)[:-3].encode(),
    "cut_line": (HEADER + LINES + "3,0.5").encode(),
    "other_columns": b"step,reward\n1,2\n",
    "more_columns": (HEADER + "1,0.5,0.1,0.9,2.0,7\n").encode(),
    "no_header": LINES.encode(),
    "words": (HEADER + "1,good,0.1,0.9,2.0\n").encode(),
    "zeros": bytes(500),
    "latin": "episode,score,r\xe9sum\xe9\n".encode("latin-1"),
    "bytes": bytes(range(256)),
    "pickle": pickle.dumps({"score": 1}),
    "a_long_line": b"1" * 2 * csv.field_size_limit(),
    "a_long_field": (HEADER + "1," + "5" * 2 * csv.field_size_limit()).encode(),
    "blank_lines": (HEADER + "\n\n").encode(),
    "json": b'{"score": [1, 2]}',
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_score_file_is_named(tmp_path, name):
    (tmp_path / "scores.csv").write_bytes(UNREADABLE[name])
    with pytest.raises(ValueError, match=r"scores\.csv") as error:
        read_scores(tmp_path / "scores.csv")
    assert len(str(error.value)) < 1_000


def test_the_rest_is_drawn_where_files_cannot_be_read(tmp_path):
    """A warning for each, also for a folder in a file's place; the others in order."""
    for number, content in enumerate([*UNREADABLE.values(), *[(HEADER + LINES).encode()] * 3]):
        folder = tmp_path / f"seed{number}"
        folder.mkdir()
        (folder / "scores.csv").write_bytes(content)
    (tmp_path / "seed99" / "scores.csv").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    with pytest.warns(UserWarning, match="left out") as caught:
        runs = read_runs(tmp_path)
    first = len(UNREADABLE)
    assert list(runs) == [f"seed{first}", f"seed{first + 1}", f"seed{first + 2}"]
    assert runs[f"seed{first}"]["score"].tolist() == [0.5, 1.5]
    named = [str(warning.message) for warning in caught]
    assert len(named) == len(UNREADABLE) + 1
    assert all(
        any(f"seed{number}/scores.csv" in text for text in named) for number in (*range(first), 99)
    )


def test_no_readable_score_file_is_a_clear_error(tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(FileNotFoundError, match="no score file that can be read"):
            read_runs(folder)
    (tmp_path / "seed0").mkdir()
    (tmp_path / "seed0" / "scores.csv").write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(FileNotFoundError, match="no score file that can be read"),
    ):
        read_runs(tmp_path)


def test_a_run_that_moved_aside_is_not_drawn_as_another_seed(tmp_path):
    for name in ("seed0", "seed0.1", "seed2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.csv").write_text(HEADER + LINES)
    assert list(read_runs(tmp_path)) == ["seed0", "seed2"]


def test_lines_may_end_as_on_windows(tmp_path):
    (tmp_path / "scores.csv").write_bytes((HEADER + LINES).replace("\n", "\r\n").encode())
    assert read_scores(tmp_path / "scores.csv")["score"].tolist() == [0.5, 1.5]
