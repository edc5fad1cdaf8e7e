// The arms of reacher/physics.py and reacher/task.py. A physics step has a closed form: the joint
// rates are M^-1 J' (m v*, I w*), with M the inertia matrix (4 x 4) and v*, w* the bodies' free
// velocities. Axes are Unity's, y up; quaternions are w, x, y, z; units m, s, rad, kg, N m.
// Needs TASK and COLUMNS, and no page: it also runs in Node and in a worker.
const { STEPS_PER_DECISION, EPISODE_DECISIONS, STEP_REWARD, HAND_RADIUS, GOAL_ORBIT, GOAL_HEIGHT } = TASK;
const STEP = TASK.PHYSICS_STEP, FASTEST = TASK.MAX_ANGULAR_VELOCITY; // s; rad/s of a body
const INERTIA = [[2.750735, 0.122059, 2.750735], [3.858919, 0.256818, 3.858919]]; // masses are 1
const CENTER_OF_MASS = [0, 1.454545], LEVER = [-4.02, -3]; // along a body's own y, from its center
const TRAINED_WORLD = { gravity: TASK.GRAVITY, drag: TASK.ANGULAR_DRAG, torque: TASK.MAX_TORQUE,
  size: TASK.RESET_PARAMETERS.goal_size, speed: TASK.RESET_PARAMETERS.goal_speed, noise: 0 };

const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const length = (a) => Math.hypot(a[0], a[1], a[2]);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const times = (R, v) => [R[0] * v[0] + R[1] * v[1] + R[2] * v[2], R[3] * v[0] + R[4] * v[1] + R[5] * v[2],
  R[6] * v[0] + R[7] * v[1] + R[8] * v[2]];
const own = (R, v) => [R[0] * v[0] + R[3] * v[1] + R[6] * v[2], R[1] * v[0] + R[4] * v[1] + R[7] * v[2],
  R[2] * v[0] + R[5] * v[1] + R[8] * v[2]]; // R' v: from the world's axes to the body's
const product = (a, b) => [
  a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
  a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]];
const rotation = ([w, x, y, z]) => [
  w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y),
  2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
  2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z];

class Arm {
  constructor(angle, share) { // of the goal: degrees on its circle, and speed as a share of the largest
    this.first = angle;
    this.share = share;
    this.hang();
  }

  hang() { // as after a reset
    this.joints = [0, 0, 0, 0];
    this.velocity = [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]; // of each body: w, then v
    this.angle = this.first;
    this.orbit = GOAL_ORBIT;
    this.touches = false;
    this.moveBodies();
    this.placeGoal();
  }

  placeGoal() {
    const radians = this.angle * (Math.PI / 180);
    this.goal = [this.orbit * Math.sin(radians), GOAL_HEIGHT, this.orbit * Math.cos(radians)];
  }

  moveBodies() { // forward kinematics
    let at = [0, -4, 0], q = [0, 1, 0, 0];
    this.bodies = [];
    this.axes = [];
    this.anchors = [];
    for (let b = 0; b < 2; b++) {
      if (b) at = add(at, times(this.bodies[0].R, [0, 6, 0]));
      const lever = [0, LEVER[b], 0];
      for (let k = 0; k < 2; k++) { // the joint about the body's x, then the one about its z
        const R = rotation(q), anchor = add(at, times(R, lever)), half = this.joints[2 * b + k] / 2;
        this.anchors.push(anchor);
        this.axes.push(times(R, k ? [0, 0, 1] : [1, 0, 0]));
        q = product(q, k ? [Math.cos(half), 0, 0, Math.sin(half)] : [Math.cos(half), Math.sin(half), 0, 0]);
        at = sub(anchor, times(rotation(q), lever));
      }
      const size = Math.hypot(...q);
      q = q.map((value) => value / size);
      const R = rotation(q);
      this.bodies.push({ at, q, R, center: add(at, times(R, [0, CENTER_OF_MASS[b], 0])) });
    }
    this.elbow = this.anchors[2];
    this.hand = add(this.bodies[1].at, times(this.bodies[1].R, [0, TASK.HAND_OFFSET, 0]));
  }

  // One step of 0.02 s; actions (4) as shares of the torque, push a force on the hand or null.
  step(actions, world, push = null) {
    const M = new Float64Array(16), rates = new Float64Array(4), arms = [[], []];
    for (let b = 0; b < 2; b++) {
      const { R, center } = this.bodies[b], I = INERTIA[b], [wx, wy, wz, vx, vy, vz] = this.velocity[b];
      const w = own(R, [wx, wy, wz]), torque = [0, 1].map((k) => world.torque * clamp(actions[2 * b + k], -1, 1));
      const turn = own(R, [torque[0], 0, torque[1]]);
      const free = [0, 1, 2].map((k) => (w[k] + STEP * turn[k] / I[k]) * (1 - world.drag * STEP));
      const cut = FASTEST / Math.max(Math.sqrt(dot(free, free)), FASTEST);
      const spin = times(R, free.map((value, k) => I[k] * cut * value)), momentum = [vx, vy - STEP * world.gravity, vz];
      const axes = [];
      for (let j = 0; j < 2 + 2 * b; j++) {
        const axis = this.axes[j], arm = cross(axis, sub(center, this.anchors[j]));
        axes.push(own(R, axis));
        arms[b].push(arm);
        rates[j] += dot(arm, momentum) + dot(axis, spin);
        if (b && push) rates[j] += STEP * dot(cross(axis, sub(this.hand, this.anchors[j])), push);
        for (let i = 0; i <= j; i++) {
          M[4 * j + i] += dot(arm, arms[b][i]) + I[0] * axes[j][0] * axes[i][0] + I[1] * axes[j][1] * axes[i][1]
            + I[2] * axes[j][2] * axes[i][2];
        }
      }
    }
    for (let i = 0; i < 4; i++) { // M = L L' (Cholesky), and L y = rates
      for (let j = 0; j <= i; j++) {
        let sum = M[4 * i + j];
        for (let k = 0; k < j; k++) sum -= M[4 * i + k] * M[4 * j + k];
        M[4 * i + j] = i === j ? Math.sqrt(sum) : sum / M[5 * j];
      }
      for (let k = 0; k < i; k++) rates[i] -= M[4 * i + k] * rates[k];
      rates[i] /= M[5 * i];
    }
    for (let i = 3; i >= 0; i--) { // L' x = y
      for (let k = i + 1; k < 4; k++) rates[i] -= M[4 * k + i] * rates[k];
      rates[i] /= M[5 * i];
    }
    for (let j = 0; j < 4; j++) this.joints[j] += STEP * rates[j];
    this.velocity = [0, 1].map((b) => {
      let w = [0, 0, 0], v = [0, 0, 0];
      for (let j = 0; j < 2 + 2 * b; j++) {
        w = add(w, this.axes[j], rates[j]);
        v = add(v, arms[b][j], rates[j]);
      }
      return [...w, ...v];
    });
    this.moveBodies();
  }

  touch(world) {
    const away = sub(this.hand, this.goal), reach = HAND_RADIUS + world.size / 2;
    this.touches = dot(away, away) <= reach * reach;
  }

  // One step of the task: the goal moves, the hand is paid, and then the bodies move. Returns the reward.
  live(actions, world, push = null) {
    this.angle += this.share * world.speed;
    this.placeGoal();
    this.touch(world);
    this.step(actions, world, push);
    return this.touches ? STEP_REWARD : 0;
  }

  observe(world) { // (33)
    const seen = new Float32Array(TASK.OBSERVATION_SIZE), { UPPER_ARM, FOREARM, GOAL, HAND, GOAL_SPEED } = COLUMNS;
    this.bodies.forEach(({ at, q: [w, x, y, z] }, b) => {
      const set = (values, column) => seen.set(values, [UPPER_ARM, FOREARM][b] + column);
      set(at, COLUMNS.POSITION);
      set([x, y, z, w + TASK.HALF_TURN_W], COLUMNS.ORIENTATION);
      set(this.velocity[b].slice(0, 3), COLUMNS.ANGULAR_VELOCITY);
      set(this.velocity[b].slice(3), COLUMNS.VELOCITY);
    });
    seen.set(this.goal, GOAL);
    seen.set([0, 1, 0], HAND);
    seen[GOAL_SPEED] = this.share * world.speed;
    return seen;
  }
}
