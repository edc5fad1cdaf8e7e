"""One HTML file in which arms live and learn, and how an actor or a learner gets into it."""
