"""All of this project's that the notebook's cells call: environments, seeds, files, figures.

The agent itself (replay, networks, losses, training loop) is defined in the notebook; what these
names stand for is in `reacher`, `tutorial.training` and `tutorial.report`, none of which imports
this module.
"""
# ruff: noqa: F401

from reacher.compiling import njit
from reacher.drawing import hand_to_goal
from reacher.episode import evaluate_policy, rollout
from tutorial import exercises
from tutorial.notebook import definitions
from tutorial.paths import CHECKPOINTS, PROJECT
from tutorial.report import bugs, diagrams, figures, interactive, study, summaries, tables, trials
from tutorial.report.figures import animated_png, plot_scores, record_frames
from tutorial.report.live import live_arms, show_arms
from tutorial.training import compiled
from tutorial.training.environments import GYMNASIUM, open_environment, reward_threshold_of
from tutorial.training.evaluation import (
    open_evaluation,
    returns_that_followed,
    values_over_torques,
)
from tutorial.training.health import require_finite, require_healthy, require_observations
from tutorial.training.layers import FixedScale
from tutorial.training.parameters import check_parameters
from tutorial.training.progress import log_means, tensorboard_curves
from tutorial.training.randomness import normal_numbers, seed_everything, versions
from tutorial.training.run import training_run
from tutorial.training.run_files import (
    has_ended,
    load_hyperparameters,
    load_network,
    require_pretrained,
    require_same_run,
    run_folder,
)
from tutorial.training.scores import (
    SOLVED_SCORE,
    moving_average,
    read_runs,
    read_scores,
    share_of_threshold,
    solved_at,
)
from tutorial.training.settings import (
    Settings,
    Sizes,
    make_settings,
    require_mirrors,
    setting,
)
