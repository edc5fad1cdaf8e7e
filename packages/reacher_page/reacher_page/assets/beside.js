// Two arms on one goal: two actors, two learners, or the reader against the agent. A part of page.js.
// sides: null, or { names: of the first and the second arm of each pair, other(): the actor of the
// second, if it is another one, label: of that actor in links, torques: the reader's, for arm 1 }.
let sides = null;
const DUEL = 40; // s
const isSecond = (arm) => Number(arm.name) % 2 === 0;
const nameOf = (arm) => sides?.torques && arm.pair === 0 ? sides.names[Number(isSecond(arm))] : arm.name;

function stand(wanted) { // two by two, or each arm for itself
  if (!sides && !wanted) return;
  sides = wanted;
  arms.forEach((arm, k) => { arm.pair = k >> 1; Object.assign(arm, arms[sides ? k & ~1 : k].own); });
  byId("pads").hidden = !sides?.torques;
  byId("duel").textContent = sides?.torques ? "Give up" : "You against the agent";
  byId("rival").value = sides?.label ?? "";
  byId("beside-note").textContent = !sides ? "Two arms follow one goal. Can you hold it as long as the agent does?" : sides.torques
    ? "You drive arm 1 for 40 seconds: W A S D turn its upper arm and the arrow keys its forearm, or drag in the two fields. The agent drives arm 2 to the same goal."
    : `Arms with odd numbers: ${sides.names[0]}. The colored ones beside them: ${sides.names[1]}. Two by two they have one goal.`;
  startAgain();
  arrange();
  frame();
}

function compareWith(label) { // the actor of this label acts on every second arm; false: there is none
  const rival = actors.find((other) => other.label === label);
  if (!rival || arms.length < 2) return false;
  stand({ label, other: () => actors.find((other) => other.label === label) ?? rival, get names() { return [actor.title, this.other().title]; } });
  choose(1);
  remember();
  return true;
}

function duel() {
  endHint();
  const touched = [0, 0];
  let passed = 0;
  stand({ names: ["you", "the agent"], torques: [0, 0, 0, 0],
    count() {
      touched[0] += arms[0].touches;
      touched[1] += arms[1].touches;
      if (++passed * STEP < DUEL) return;
      const [you, agent] = this.scores.map((score) => score.toFixed(1));
      stand(null);
      choose(0);
      say(`You: ${you} points. The agent: ${agent}, of 40.`);
      byId("beside-note").textContent = `You: ${you} points. The agent: ${agent}, of 40. (After 40 seconds, doubled as for the 80 of an episode.)`;
    },
    get scores() { return touched.map((count) => MOST * count / Math.max(passed, 1)); },
    get left() { return DUEL - passed * STEP; } });
  choose(1);
  set("acting", true);
  set("slow", 1);
  set("playing", true);
  byId("view").focus({ preventScroll: true });
  byId("stage").scrollIntoView({ block: "nearest" });
  say("Arm 1 is yours. Bring its hand into the goal.");
}

const KEYS = { w: [0, -1], s: [0, 1], a: [1, -1], d: [1, 1], arrowup: [2, -1], arrowdown: [2, 1], arrowleft: [3, -1], arrowright: [3, 1] };
function steer(event, size) { // a key goes down (1) or up (0); whether it is the reader's arm's
  const key = Object.hasOwn(KEYS, event.key.toLowerCase()) && KEYS[event.key.toLowerCase()];
  if (!sides?.torques || !key || event.ctrlKey || event.metaKey || event.altKey) return false;
  const [joint, sign] = key;
  if (size || sides.torques[joint] === sign) sides.torques[joint] = size * sign;
  event.preventDefault();
  showPads();
  return true;
}
function showPads() {
  for (const pad of document.querySelectorAll(".pad")) {
    const [x, z] = sides.torques.slice(Number(pad.dataset.joint));
    pad.firstElementChild.style.translate = `${36 * z}% ${36 * x}%`;
  }
}

function tellSides() {
  if (sides.torques) {
    const [you, agent] = sides.scores.map((score) => score.toFixed(1));
    return write(`You: ${you}. The agent: ${agent}, of 40 at this rate.\n${Math.ceil(sides.left)} s are left.`);
  }
  const lines = [false, true].map((second) => {
    const some = shown().filter((arm) => isSecond(arm) === second), name = sides.names[Number(second)];
    return `${name[0].toUpperCase()}${name.slice(1)}: ${some.filter((arm) => arm.touches).length} of ${some.length} on the goal, score ${(MOST * shareOf(some)).toFixed(1)}`;
  });
  write([...lines, learning?.isRunning && !stored ? learning.told : ""].filter(Boolean).join("\n"));
}

function tellRivals() { // the actors that may stand beside the one that acts
  const options = actors.map(({ label, title }) => new Option(title, label));
  byId("rival").replaceChildren(new Option("nobody", ""), ...options);
  byId("rival").value = sides?.label ?? "";
}

function listenBeside() {
  byId("beside").hidden = arms.length < 2;
  byId("duel").addEventListener("click", () => { if (sides?.torques) { stand(null); choose(0); } else duel(); });
  byId("rival").addEventListener("change", ({ target: { value } }) => { if (!compareWith(value)) { stand(null); choose(0); } });
  for (const pad of document.querySelectorAll(".pad")) {
    const joint = Number(pad.dataset.joint), to = (x, z) => { sides?.torques?.splice(joint, 2, x, z); if (sides?.torques) showPads(); };
    const move = (event) => {
      const box = pad.getBoundingClientRect(), at = (place, low, size) => clamp(2.4 * ((place - low) / size - 0.5), -1, 1);
      to(at(event.clientY, box.top, box.height), at(event.clientX, box.left, box.width));
    };
    pad.addEventListener("pointerdown", (event) => { pad.setPointerCapture(event.pointerId); move(event); event.preventDefault(); });
    pad.addEventListener("pointermove", (event) => { if (pad.hasPointerCapture(event.pointerId)) move(event); });
    for (const end of ["pointerup", "pointercancel"]) pad.addEventListener(end, () => to(0, 0));
  }
}
