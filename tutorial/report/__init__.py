"""What the notebook needs to show results: scores, statistics, figures."""
