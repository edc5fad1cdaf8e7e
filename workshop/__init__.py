"""What the notebook needs beside its agent: so far, the compiled learner."""
