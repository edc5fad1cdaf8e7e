"""Measurements of the notebook and its environment, beside other people's code.

`python -m research.benchmarks` measures all rows and writes `doc/benchmarks.md`.
"""
