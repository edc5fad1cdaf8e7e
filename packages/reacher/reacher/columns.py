"""Where each quantity stands in an observation of an arm: 33 numbers, positions from the shoulder.

A body is thirteen numbers, of which BODY says the order. Use them as `observations[..., GOAL]`.
"""

# of a body, from its first number
POSITION = slice(0, 3)  # of its center, m
ORIENTATION = slice(3, 7)  # a quaternion x, y, z, w
ANGULAR_VELOCITY = slice(7, 10)  # rad/s
VELOCITY = slice(10, 13)  # m/s

# of an observation
UPPER_ARM = slice(0, 13)
FOREARM = slice(13, 26)
GOAL = slice(26, 29)  # position, m
HAND = slice(29, 32)  # as the forearm sees it: always 0, 1, 0
CLOCK, EARNINGS = 29, 31  # what `DelayedRewards` may show instead
GOAL_SPEED = 32  # degrees per physics step
