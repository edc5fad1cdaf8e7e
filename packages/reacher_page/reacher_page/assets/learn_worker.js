// Learns in a thread of its own. It takes { learning, seed, choices, episodes } and then { isPaused, speed } or { isSaved },
// and posts news with the newest actor; the last news of an episode has its score.
let isPaused = false, speed = Infinity, wake = () => {}, machine = null;
const state = () => Object.values(machine.learner.state).map((place) => machine.room(place).slice());
onmessage = ({ data }) => {
  if (data.learning) return learn(data).catch((error) => postMessage({ error: String(error) }));
  if (data.isSaved) return postMessage({ isSaved: true, state: state() });
  ({ isPaused = isPaused, speed = speed } = data);
  wake();
};
async function learn(data) {
  const { learning, seed, choices, episodes } = data, random = new Random(seed);
  const settings = { ...learning.settings, ...choices }, world = { ...TRAINED_WORLD, size: choices.size ?? TRAINED_WORLD.size };
  machine = await Machine.load(learning.programs, learning.modules, random);
  const agent = new Agent(machine, settings, random), training = new Training(agent, choices.arms, new Random(seed + 1000), world, choices.every);
  let seconds = 0, told = -1, owed = 0;
  const tell = (score = null) => {
    told = seconds;
    postMessage({ score, episode: agent.schedules.scores.length + (score === null), decision: training.decision, sum: training.score,
      updates: agent.updates, seconds, actor: machine.taken("act") });
  };
  tell();
  for (let last = performance.now(); agent.schedules.scores.length < episodes && agent.learns;) {
    await new Promise((go) => { wake = go; if (!isPaused) setTimeout(go); });
    const now = performance.now();
    owed = speed === Infinity ? speed : Math.min(owed, 1e9) + Math.min(now - last, 200) / 1000 * speed / (STEPS_PER_DECISION * STEP); // decisions
    last = now;
    if (isPaused) continue;
    if (owed < 1) { await new Promise((go) => setTimeout(go, 20)); continue; }
    const begin = performance.now();
    do {
      const score = training.decide();
      owed--;
      if (score !== null) tell(score);
    } while (performance.now() - begin < 30 && owed >= 1 && agent.schedules.scores.length < episodes);
    seconds += (performance.now() - begin) / 1000;
    if (seconds - told > 0.25) tell();
  }
  postMessage({ isDone: true, state: state() });
}
