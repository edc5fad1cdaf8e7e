"""What the evidence pages rest on: plans, trainings, their runner, tables and statistics."""
