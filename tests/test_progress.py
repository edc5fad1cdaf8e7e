"""What a reader sees of a long training beside its tables: TensorBoard's scalars."""

import pytest

from small_training import shrink, train
from tutorial.scores import read_scores


def test_tensorboard_shows_the_scores_of_a_resumed_training_once(tmp_path, monkeypatch):
    shrink(monkeypatch.setattr)
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    folder = tmp_path / "default" / "seed0"
    train(folder, episodes=2)
    train(folder, episodes=3, resume=True)
    found = event_accumulator.EventAccumulator(str(folder / "tensorboard")).Reload()
    scores = read_scores(folder / "scores.csv")["score"]
    shown = {one.step: one.value for one in found.Scalars("score")}
    assert [*shown] == [1, 2, 3] and [*shown.values()] == pytest.approx([*scores], rel=1e-6)
    assert {"score", "average", "Q", "TD error"} <= {*found.Tags()["scalars"]}
