"""Export trained actors to ONNX, for use without PyTorch and without the notebook.

    python -m tutorial.experiments.export checkpoints/default/seed0

writes `actor_best.onnx` beside `actor_best.safetensors`: the mean policy, without noise, from
observations (batch, 33), float32, as the environment gives them, to torques (batch, 4). It needs
the extra `onnx`; using the file needs onnxruntime alone:

    import onnxruntime
    actor = onnxruntime.InferenceSession("checkpoints/default/seed0/actor_best.onnx")
    actions = actor.run(None, {"observations": observations})[0]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from reacher.files import write_whole
from tutorial import notebook
from tutorial.training.run_files import load_hyperparameters, load_network


def trained_actor(folder: Path) -> torch.nn.Module:
    """The best actor of a run's folder, without noise, for acting.

    Raises:
        FileNotFoundError, ValueError: no such run, or files that do not hold what they should.
    """
    definitions = notebook.definitions()
    fields = definitions.Hyperparameters.model_fields
    settings = definitions.Hyperparameters(**load_hyperparameters(folder, fields))
    actor = definitions.Actor(definitions.OBSERVATION_SCALE, 4, settings)
    load_network(folder / "actor_best.safetensors", actor)
    return actor.eval()


def export(folder: Path) -> Path:
    """Write `actor_best.onnx` into a run's folder; return its path.

    Raises:
        ModuleNotFoundError: the packages for it are not installed.
    """
    try:
        import onnxscript  # noqa: F401  what torch.onnx needs, and names less clearly
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; exporting needs: pip install -e '.[onnx]'") from None
    actor, path = trained_actor(folder), folder / "actor_best.onnx"
    observations = torch.zeros(2, len(notebook.definitions().OBSERVATION_SCALE))
    program = torch.onnx.export(
        actor,
        (observations,),
        dynamo=True,
        verbose=False,
        input_names=["observations"],
        output_names=["actions"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
    )
    model = program.model_proto
    graph = model.graph
    for part in (
        model,
        graph,
        *graph.node,
        *graph.input,
        *graph.output,
        *graph.value_info,
        *graph.initializer,
    ):
        del part.metadata_props[:]  # where in the sources, on this machine, each node comes from
    write_whole(path, model.SerializeToString())
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="of runs, as runs/fast/seed0")
    for folder in parser.parse_args(arguments).folders:
        print(export(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
