"""What the pages of evidence rest on: plans, trainings, their runner, tables and statistics."""
