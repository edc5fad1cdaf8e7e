"""What stands behind the notebook; `training` and `report` are what its cells use by `helpers`.

The other parts use the notebook's own definitions, by `tutorial.notebook`.
"""
