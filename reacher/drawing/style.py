"""How the arms look: every distance, speed and color of the pictures.

Touch shows by more than color: a touched goal is far brighter than an untouched one, less
see-through, and wears a ring.
"""

# Sizes, m. What the physics has is in `reacher.physics` and `reacher.task`.
ARM_RADIUS = 0.5  # of both parts, as in the physics
BASE_RADIUS = 1.0
ELBOW_RADIUS = 0.75
POST_RADIUS = 0.14  # from the floor to the base
FLOOR = -14.5  # height; the base is at 0, and a hand that hangs reaches down to -14
SQUARE = 6.5  # side of the floor's squares
RING_OUTSIDE = 1.16  # radius of a touched goal's ring, as a share of the goal's
RING_WIDTH = 0.24  # radius of the ring's own thickness
SPACING = 24.0  # of the arms' bases; more where goals are so large that they would meet
ROW_SPACING = 30.0  # the same from row to row, which the camera sees shortened
LARGEST_FRAMED_GOAL = 40.0  # diameter; spacing and camera heed no larger one

# What a camera frames of an arm, m: around the base, below and above it.
REACH = 15.0, -15.0, 15.0  # all that it can reach
WORKPLACE = 11.5, -9.0, 5.0  # where a trained arm is, with its goal

# Colors: red, green, blue from 0 to 1.
SKY = 0.055, 0.071, 0.106  # and the floor far away
FLOOR_COLORS = (0.118, 0.142, 0.192), (0.137, 0.163, 0.218)  # of its squares
POST = 0.34, 0.38, 0.47
BASE = 0.47, 0.51, 0.60
ARM = 0.90, 0.91, 0.93
ELBOW = 0.47, 0.51, 0.60
HAND = 0.20, 0.62, 1.0
GOAL = 0.80, 0.42, 0.66
TOUCHED_GOAL = 0.20, 0.95, 0.45
RING = 1.0, 1.0, 1.0
GOAL_OPACITY, TOUCHED_OPACITY = 0.42, 0.46
GLOW = 0.5  # light that a touched goal gives off

# Of figures and flat pictures: the color-blind can tell them apart (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, PURPLE, LIGHT_BLUE, YELLOW = PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
)

# Light, 0 to 1.
AMBIENT, HEADLIGHT, SUN, SHINE = 0.42, 0.22, 0.62, 0.25
SUN_FROM = -40.0, -60.0, 90.0

# Cameras: degrees, and shares of the distance into which the arms just fit.
FIELD_OF_VIEW = 28.0  # of the longer side of a picture
ELEVATION = 36.0  # above the horizon, of the one that frames many arms
ONE_ARM_ELEVATION = 18.0
AZIMUTH = 90.0  # looks along Unity's z axis, with x to the right
MARGIN = 1.02

# Pictures and moving pictures.
PICTURE_SIZE = 480  # pixels, of one arm's picture
SAMPLES = 4  # for each pixel, against jagged edges
SHADOW_SIZE = 2048  # pixels of a shadow map, at most
CORNER = 18  # pixels, radius of a card's corners
CARD_TEXT, CARD_QUIET_TEXT = (235, 239, 247), (166, 176, 196)
GALLERY_LABELS, GALLERY_ROW = 172, 150  # pixels: width of the labels, height of a row
GALLERY_ELEVATION = 20.0
GALLERY_FRAMED = 10.5, -10.0, 3.0  # as WORKPLACE
LABEL_HEIGHT = 40  # pixels, of a line of text
PAGE_TEXT = 40, 44, 52  # on white
GRID_SHAPE, GRID_EDGE = 0.62, 0.06  # height of a picture by its rows and columns, share of width
