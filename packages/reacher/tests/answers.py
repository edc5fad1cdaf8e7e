"""Comparing answers of environments."""

import numpy as np


def assert_same(answer, expected):
    """Two answers of environments agree in every number and type, bit for bit."""
    for one, other in zip(answer.values(), expected.values(), strict=True):
        for name, value in vars(other).items():
            found = getattr(one, name)
            assert type(found) is type(value), name
            assert getattr(found, "dtype", None) == getattr(value, "dtype", None), name
            np.testing.assert_array_equal(found, value, err_msg=name)
