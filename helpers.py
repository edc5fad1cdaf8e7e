"""What the notebook's cells call by name: environments, seeds, files, figures.

The agent itself (replay, networks, losses, training loop) is defined in the notebook; what these
names stand for is in `workshop.training` and `workshop.report`.
"""
# ruff: noqa: F401

from workshop.paths import CHECKPOINTS, PROJECT
from workshop.report.figures import COLORS, animated_png, plot_scores, record_frames
from workshop.training.environments import GYMNASIUM, mark_of, open_environment
from workshop.training.episodes import decisions, returns_that_followed
from workshop.training.episodes import scores as episode_scores
from workshop.training.evaluation import open_evaluation, values_over_torques
from workshop.training.files import to_bytes, write_whole
from workshop.training.health import require_finite, require_healthy
from workshop.training.parameters import check_parameters
from workshop.training.progress import log_means, sizes_of_noise, tensorboard_curves
from workshop.training.randomness import normal_numbers, seed_everything, versions
from workshop.training.run import training_run
from workshop.training.run_files import (
    load_about,
    load_hyperparameters,
    load_network,
    require_kept_agent,
    run_folder,
    save_hyperparameters,
    save_networks,
)
from workshop.training.saving import save_state
from workshop.training.scores import (
    SOLVED_SCORE,
    ScoreFile,
    first_at,
    moving_average,
    read_runs,
    read_scores,
    solved_at,
)
from workshop.training.settings import (
    RareSettings,
    Sizes,
    fading,
    is_late,
    make_settings,
    noise_factor,
    noise_of_actions,
    noise_of_weights,
    rate_factor,
    setting,
    steps_of_phase,
)
from workshop.training.states import TrainingState
