"""Two sum trees in other manners than the notebook's, to compare it with.

Both draw leaf i with probability p_i / sum of all p and set the priorities of leaves.
"""

from __future__ import annotations

import numpy as np


class Node:
    """A node of a tree of linked objects, in the manner of reference A of the notebook.

    A leaf carries data; any other node carries the sum of its two children. Changes of a
    priority are added to every sum above it.
    """

    def __init__(self, data=None, priority: float = 0.0):
        self.data, self.priority = data, priority
        self.parent = self.left = self.right = None

    def change(self, difference: float) -> None:
        """Add a difference to this priority and to the sums above."""
        self.priority += difference
        if self.parent is not None:
            self.parent.change(difference)

    def attach(self, leaf: Node) -> None:
        """Hang a leaf into this subtree, on the side with the smaller sum at every node."""
        if self.left is not None:
            (self.left if self.left.priority < self.right.priority else self.right).attach(leaf)
        elif self.data is None:  # an empty tree becomes its first leaf
            self.data = leaf.data
            self.change(leaf.priority)
        else:  # a leaf moves down beside the new one
            self.left, self.right, self.data = Node(self.data, self.priority), leaf, None
            self.left.parent = self.right.parent = self
            self.change(leaf.priority)

    def find(self, value: float) -> Node:
        """The leaf in whose share of the sum the value, in [0, sum), falls."""
        if self.left is None:
            return self
        if value < self.left.priority or self.right.priority <= 0:
            return self.left.find(value)
        return self.right.find(value - self.left.priority)


def linked_tree(priorities: np.ndarray, rows: np.ndarray) -> Node:
    """A tree of linked nodes with the given priorities (k,) and rows (k, width) as data."""
    root = Node()
    for priority, row in zip(priorities.tolist(), rows, strict=True):
        root.attach(Node(row, priority))
    return root


class NumpyTree:
    """The notebook's array of sums without compiled loops: a whole batch moves level by level.

    Args:
        capacity: number of leaves.
    """

    def __init__(self, capacity: int):
        self.levels = max(1, int(np.ceil(np.log2(capacity))))
        self.first_leaf = 2**self.levels
        self.sums = np.zeros(2 * self.first_leaf)

    @property
    def total(self) -> float:
        return float(self.sums[1])

    def priorities(self, leaves: np.ndarray) -> np.ndarray:
        """Priorities (k,) of leaves (k,)."""
        return self.sums[self.first_leaf + leaves]

    def update(self, leaves: np.ndarray, priorities: np.ndarray) -> None:
        """Set the priorities (k,) of leaves (k,) and recompute the sums above."""
        nodes = leaves + self.first_leaf
        self.sums[nodes] = priorities
        for _ in range(self.levels):
            nodes = nodes // 2  # siblings write the same sum twice, which is quicker than a search
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def find(self, values: np.ndarray) -> np.ndarray:
        """Leaves (k,) in whose shares of the sum the values (k,), in [0, total), fall."""
        nodes, values = np.ones(len(values), dtype=np.int64), values.copy()
        for _ in range(self.levels):
            nodes *= 2
            left = self.sums[nodes]
            right = (values >= left) & (self.sums[nodes + 1] > 0)
            values -= np.where(right, left, 0.0)
            nodes += right
        return nodes - self.first_leaf
