"""What stands around the agent: settings and runs, figures and exercises."""
