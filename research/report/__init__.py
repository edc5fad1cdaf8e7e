"""Tables and figures of what was trained."""
