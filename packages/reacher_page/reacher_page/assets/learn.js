// What is around a learner that learns in the page, as in the notebook's cells: noise, windows of n steps,
// prioritized replay, schedules and episodes. The learner itself is the notebook's, as programs of the
// machine (machine.js); `Arm` is that of physics.js. Needs no page: it runs in a worker and in Node.
const SEEN = TASK.OBSERVATION_SIZE, ACTION = TASK.ACTION_SIZE, WIDTH = 2 * SEEN + ACTION + 2;

class Random { // xoshiro128** (Blackman and Vigna, 2018); normal numbers by Box and Muller
  constructor(seed) {
    this.s = Uint32Array.from({ length: 4 }, () => {
      seed = seed + 0x9e3779b9 | 0;
      let mixed = Math.imul(seed ^ seed >>> 16, 0x21f0aaad);
      mixed = Math.imul(mixed ^ mixed >>> 15, 0x735a2d97);
      return mixed ^ mixed >>> 15;
    });
    this.spare = null;
  }
  bits() {
    const s = this.s, x = Math.imul(s[1], 5), found = Math.imul(x << 7 | x >>> 25, 9) >>> 0, t = s[1] << 9;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t;
    s[3] = s[3] << 11 | s[3] >>> 21;
    return found;
  }
  uniform() { return (this.bits() + 0.5) / 4294967296; }
  normal() {
    if (this.spare !== null) { const found = this.spare; this.spare = null; return found; }
    const r = Math.sqrt(-2 * Math.log(this.uniform())), turn = 2 * Math.PI * this.uniform();
    this.spare = r * Math.sin(turn);
    return r * Math.cos(turn);
  }
}

class PrioritizedReplay { // a ring of rows, and a sum tree beside it; capacity: a power of 2
  constructor(capacity, width, alpha, random) {
    Object.assign(this, { capacity, width, alpha, random, size: 0, position: 0 });
    this.rows = new Float32Array(capacity * width);
    this.tree = new Float64Array(2 * capacity);
  }
  add(rows, tdErrors) {
    tdErrors.forEach((error, k) => {
      this.rows.set(rows.subarray(k * this.width, (k + 1) * this.width), this.position * this.width);
      this.update(this.position, error);
      this.position = (this.position + 1) % this.capacity;
      this.size = Math.min(this.size + 1, this.capacity);
    });
  }
  update(index, tdError) {
    const { tree } = this;
    let node = this.capacity + index;
    tree[node] = (Math.abs(tdError) + 1e-4) ** this.alpha;
    for (node >>= 1; node; node >>= 1) tree[node] = tree[2 * node] + tree[2 * node + 1];
  }
  find(number) {
    const { tree, capacity } = this;
    let node = 1;
    while (node < capacity) {
      node *= 2;
      if (number >= tree[node]) number -= tree[node++];
    }
    return node - capacity;
  }
  sample(batch, beta) { // one from each equal segment of the sum, and importance weights
    const indices = Int32Array.from({ length: batch }, (_, k) => Math.min(this.find((k + this.random.uniform()) / batch * this.tree[1]), this.size - 1)); // rounding may carry it too far
    const shares = Array.from(indices, (index) => this.tree[this.capacity + index]), least = Math.min(...shares);
    return { indices, weights: shares.map((share) => (share / least) ** -beta) };
  }
}

class NStepBuffer { // decisions of all arms: { observations, actions, rewards, following }, flat arrays
  constructor(nStep, discount) { Object.assign(this, { nStep, discount, steps: [] }); }
  append(step) {
    this.steps.push(step);
    return this.steps.length === this.nStep ? [this.take()] : [];
  }
  flush() { return this.steps.map(() => 0).map(() => this.take()); }
  take() { // rows of the oldest decision, with all rewards that are known
    const { steps, discount } = this, { observations, actions, rewards } = steps[0], { following } = steps.at(-1);
    const arms = rewards.length, seen = observations.length / arms, acted = actions.length / arms, width = 2 * seen + acted + 2;
    const rows = new Float32Array(arms * width);
    for (let arm = 0; arm < arms; arm++) {
      const row = rows.subarray(arm * width, (arm + 1) * width);
      row.set(observations.subarray(arm * seen, (arm + 1) * seen));
      row.set(actions.subarray(arm * acted, (arm + 1) * acted), seen);
      row[seen + acted] = steps.reduce((sum, step, k) => sum + discount ** k * step.rewards[arm], 0);
      row[seen + acted + 1] = discount ** steps.length;
      row.set(following.subarray(arm * seen, (arm + 1) * seen), seen + acted + 2);
    }
    steps.shift();
    return rows;
  }
}

class Schedules {
  constructor(settings) { Object.assign(this, { settings, episodes: [], scores: [], annealed: 0 }); }
  endEpisode(armScores) { // one arm's score varies, so means over 20 arms count
    const mean = (values) => values.reduce((a, b) => a + b) / values.length, few = Math.ceil(20 / armScores.length);
    this.episodes.push(mean(Array.from(armScores)));
    if (this.episodes.length >= few) this.scores.push(mean(this.episodes.slice(-few)));
    this.annealed += this.progress() >= this.settings.anneal_share;
  }
  progress() { return this.scores.length ? Math.max(...this.scores) / TASK.SOLVED_SCORE : -Infinity; }
  noiseFactor() { return this.settings.noise_schedule === "constant" ? 1 : 1 - clamp(this.progress(), 0, 1); }
  annealFactor() { return this.settings.anneal_episodes === null ? 1 : Math.max(0, 1 - this.annealed / this.settings.anneal_episodes); }
}

class Agent {
  constructor(machine, settings, random, capacity = 1 << 18) {
    Object.assign(this, { machine, settings, random, decisions: 0, updates: 0, waiting: [] });
    this.schedules = new Schedules(settings);
    this.windows = new NStepBuffer(settings.n_step, settings.discount);
    this.replay = new PrioritizedReplay(capacity, WIDTH, settings.priority_exponent, random);
    if (settings.mirrors === 0) for (const [path, place] of Object.entries(machine.learner.state)) if (path.endsWith("frame.signs")) machine.room(place).fill(1);
  }
  get learns() { return this.schedules.annealFactor() > 0; }
  give(method, name, fill) { // fills the arrays of an argument, one after the other
    for (const input of this.machine.programs[method].inputs) if (input.name === name) fill(input.numbers, input.shape);
  }
  giveNoise(method) { // for noisy layers
    const size = this.settings.noisy_layers ? this.schedules.annealFactor() : 0;
    this.give(method, "noise", (numbers) => { for (let k = 0; k < numbers.length; k++) numbers[k] = size && size * this.random.normal(); });
  }
  giveBatch(method, rowAt, count) { // its arrays have the columns of the rows in order
    let column = 0;
    for (const { name, numbers, shape: [size, width = 1] } of this.machine.programs[method].inputs) {
      if (name !== "batch") continue;
      for (let k = 0; k < Math.min(size, count); k++) {
        const row = rowAt(k);
        for (let j = 0; j < width; j++) numbers[k * width + j] = row[column + j];
      }
      column += width;
    }
  }
  act(observations) { // flat, to new actions; with noise, as long as it learns
    const sigma = this.learns && this.settings.gaussian_sigma * this.schedules.noiseFactor();
    this.give("act", "observations", (numbers) => numbers.set(observations));
    this.giveNoise("act");
    return this.machine.call("act")[0].subarray(0, observations.length / SEEN * ACTION).map((value) => clamp(value + sigma * this.random.normal(), -1, 1));
  }
  remember(step) {
    const rewards = step.rewards.map((reward) => this.settings.reward_scale * reward);
    this.waiting.push(...this.windows.append({ ...step, rewards }));
  }
  learn() {
    this.decisions++;
    if (!this.learns) this.waiting = [];
    else if (this.decisions % this.settings.train_freq === 0 && this.waiting.length) this.update();
  }
  endEpisode(armScores) {
    this.waiting.push(...this.windows.flush());
    this.schedules.endEpisode(armScores);
  }
  tdErrors(rows, count) {
    const errors = new Float32Array(count), program = this.machine.programs.td_errors;
    if (!this.settings.priority_exponent) return errors; // all alike
    for (let start = 0, most = program.outputs[0].length; start < count; start += most) {
      const many = Math.min(most, count - start);
      this.giveBatch("td_errors", (k) => rows.subarray((start + k) * WIDTH, (start + k + 1) * WIDTH), many);
      errors.set(this.machine.call("td_errors")[0].subarray(0, many), start);
    }
    return errors;
  }
  update() { // a phase: store what waits, and learn from batches
    const { settings, replay, machine } = this, { batch_size: batch, priority_exponent: alpha } = settings;
    const rows = new Float32Array(this.waiting.reduce((sum, part) => sum + part.length, 0)), count = rows.length / WIDTH;
    this.waiting.reduce((at, part) => { rows.set(part, at); return at + part.length; }, 0);
    this.waiting = [];
    replay.add(rows, this.tdErrors(rows, count));
    if (replay.size < settings.learning_starts) return;
    const rise = Math.min(1, this.decisions / settings.importance_anneal_steps), beta = settings.importance_exponent_start * (1 - rise) + rise;
    const samples = Array.from({ length: settings.gradient_steps }, () => replay.sample(batch, beta)), errors = [];
    machine.setRate(this.schedules.annealFactor());
    for (const { indices, weights } of samples) {
      this.giveBatch("learn", (k) => replay.rows.subarray(indices[k] * WIDTH, (indices[k] + 1) * WIDTH), batch);
      this.give("learn", "weights", (numbers) => numbers.set(weights));
      this.giveNoise("learn");
      const results = machine.call("learn");
      if (alpha) errors.push(results[0].slice());
    }
    this.updates += samples.length;
    if (alpha) samples.forEach(({ indices }, k) => indices.forEach((index, i) => replay.update(index, errors[k][i])));
  }
}

class Training { // the arms and the agent, decision by decision; rewards come at every `every`-th
  constructor(agent, arms, random, world, every = 1) {
    Object.assign(this, { agent, random, world, every, arms: new Array(arms).fill(null) });
    this.reset();
  }
  reset() {
    this.arms = this.arms.map(() => new Arm(Math.floor(360 * this.random.uniform()), 2 * this.random.uniform() - 1));
    this.observations = this.observe();
    this.decision = 0;
    this.scores = this.arms.map(() => 0);
    this.held = new Float32Array(this.arms.length);
  }
  observe() {
    const found = new Float32Array(this.arms.length * SEEN);
    this.arms.forEach((arm, k) => found.set(arm.observe(this.world), k * SEEN));
    return found;
  }
  get score() { return this.scores.reduce((a, b) => a + b) / this.scores.length; }
  decide() { // of all arms; the score of an episode that it ends, or null
    const { agent, observations } = this, actions = agent.act(observations);
    this.arms.forEach((arm, k) => {
      let reward = 0;
      for (let step = 0; step < STEPS_PER_DECISION; step++) reward += arm.live(actions.subarray(k * ACTION, (k + 1) * ACTION), this.world);
      this.held[k] += reward;
      this.scores[k] += reward;
    });
    const done = ++this.decision === EPISODE_DECISIONS, isPaid = this.decision % this.every === 0;
    const following = this.observations = this.observe();
    if (!done) agent.remember({ observations, actions, rewards: isPaid ? this.held.slice() : new Float32Array(this.arms.length), following });
    if (isPaid) this.held.fill(0);
    agent.learn();
    if (!done) return null;
    const { score } = this;
    agent.endEpisode(this.scores);
    this.reset();
    return score;
  }
}
