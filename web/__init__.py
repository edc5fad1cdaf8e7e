"""The page in which arms live, and how an actor gets into it; knows the arms alone."""
