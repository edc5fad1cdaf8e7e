"""All of this project's that the notebook's cells call: environments, seeds, files, figures.

The agent itself (replay, networks, losses, training loop) is defined in the notebook; what these
names stand for is in `reacher`, `tutorial.training` and `tutorial.report`, none of which imports
this module.
"""
# ruff: noqa: F401

from reacher.compiling import njit
from reacher.drawing import hand_to_goal
from reacher.episode import evaluate_policy, rollout
from tapejit import compiled
from tutorial import diagrams, exercises, figures, interactive, summaries, tables
from tutorial.environments import GYMNASIUM, open_environment, reward_threshold_of
from tutorial.evaluation import (
    open_evaluation,
    returns_that_followed,
    values_over_torques,
)
from tutorial.figures import animated_png, plot_scores, record_frames
from tutorial.health import require_finite, require_healthy, require_observations
from tutorial.layers import FixedScale
from tutorial.notebook import definitions
from tutorial.parameters import check_parameters
from tutorial.paths import CHECKPOINTS, PROJECT
from tutorial.progress import log_means, tensorboard_curves
from tutorial.randomness import normal_numbers, seed_everything, versions
from tutorial.run import training_run
from tutorial.run_files import (
    has_ended,
    load_hyperparameters,
    load_network,
    require_pretrained,
    require_same_run,
    run_folder,
)
from tutorial.scores import (
    SOLVED_SCORE,
    moving_average,
    read_runs,
    read_scores,
    share_of_threshold,
    solved_at,
)
from tutorial.settings import (
    Settings,
    Sizes,
    make_settings,
    require_mirrors,
    setting,
)
from web.live import live_arms, show_arms
