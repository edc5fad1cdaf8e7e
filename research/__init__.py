"""Trainings and measurements that the report is drawn from."""
