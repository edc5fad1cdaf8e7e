// The page: live arms, and what the reader does to them.
const source = document.documentElement.outerHTML; // as it was written, for who saves a learner
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const titleOf = ({ label, episode, network }) => !network ? "not at all, random torques" : !episode ? `the ${label} actor`
  : `${episode} episode${episode > 1 ? "s" : ""}${label === String(episode) ? "" : `, the ${label} actor`}`;
let actors = data.actors.map((actor) => ({ ...actor, title: titleOf(actor), network: actor.network && network(actor.network) }));
const critic = data.critic && network(data.critic), MOST = TASK.MAX_SCORE, SOLVED = TASK.SOLVED_SCORE;
const arms = data.goals.map(([angle, share], k) => Object.assign(new Arm(angle, share), { name: String(k + 1), own: { first: angle, share } }));
const scene = new Scene(byId("view")), dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const RECENT = 500; // physics steps: 10 s
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

// ------------------------------------------------------------------------------------- the state
const DEFAULTS = { episode: actors[data.first].label, arm: 0, acting: true, slow: 1, ...TRAINED_WORLD, ...data.world };
const WORLD = [ // what a slider changes: name, words, least, most, step, unit
  ["size", "Goal's diameter", 0, 16, 0.5, "m"], ["speed", "Goals' largest speed", 0, 20, 0.5, "°/step"],
  ["gravity", "Gravity", 0, 25, 0.1, "m/s²"], ["drag", "Drag", 0, 3, 0.05, "1/s"],
  ["torque", "Largest torque", 0, 300, 5, "N m"], ["noise", "Noise on the torques", 0, 1, 0.05, ""]];
const state = { ...DEFAULTS, playing: !still.matches };
let actor = actors[data.first], steps = 0, clock = 0; // physics steps so far; s not yet simulated
let stored = true, learnLink = ""; // whether the actors are those of the file; what a link says of learning
let held = null, others = 1; // what the reader holds; opacity of the arms that are not chosen
const chosen = () => arms[state.arm - 1] ?? null;
const together = (arm) => sides ? arms.filter((other) => other.pair === arm.pair) : [arm]; // those with one goal
const shown = () => chosen() ? together(chosen()) : arms;

let fading = 0;
function say(text) { // and let it fade, before it is untrue
  byId("message").textContent = text;
  byId("message").classList.remove("old");
  clearTimeout(fading);
  fading = setTimeout(() => byId("message").classList.add("old"), 3000 + 50 * text.length);
}
function startAgain() {
  for (const arm of arms) {
    arm.hang();
    Object.assign(arm, { recent: new Uint8Array(RECENT), lived: 0, action: [0, 0, 0, 0], chase: null, trail: [], before: null });
  }
  steps = clock = 0;
}
function forget() { for (const arm of arms) arm.lived = 0; } // what was measured before something changed

function policy(which, some, world) { // actions of arms
  const seen = some.map((arm) => arm.observe(world)), { network } = which;
  const actions = network?.act?.(seen) ?? seen.map((one) => network ? forward(network, one) : [normal(), normal(), normal(), normal()]);
  return actions.map((action) => Array.from(action, (value) => clamp(value + (world.noise && world.noise * normal()), -1, 1)));
}

function decide() { // new actions of all arms
  const other = sides?.other && sides.other(), groups = other ? [[actor, arms.filter((arm) => !isSecond(arm))], [other, arms.filter(isSecond)]] : [[actor, arms]];
  for (const [which, some] of groups) {
    const actions = state.acting ? policy(which, some, state) : some.map(() => [0, 0, 0, 0]);
    some.forEach((arm, k) => { arm.action = actions[k]; });
  }
  if (sides?.torques) arms[0].action = [...sides.torques];
}

function tick() { // one physics step of all arms
  if (steps % STEPS_PER_DECISION === 0) decide();
  for (const arm of arms) {
    arm.before = [arm.elbow, arm.hand, arm.goal];
    let push = null;
    if (held?.arm === arm && held.kind === "hand") {
      push = sub(held.at, arm.hand).map((value) => 60 * value);
      push = push.map((value) => value * Math.min(1, 200 / length(push)));
    } else if (arm.kick > 0) push = arm.way.map((value) => value * (arm.kick-- && 160));
    arm.live(arm.action, state, push);
    if (held?.arm === arm && held.kind === "goal") { holdGoal(); arm.lost ||= !arm.touches; }
    arm.recent[arm.lived++ % RECENT] = arm.touches;
    arm.trail.push(arm.hand);
    if (arm.trail.length > 60) arm.trail.shift();
    if (arm.chase !== null) {
      if (arm.touches) {
        if (arm.chase || arm.lost) finish(arm, `Arm ${arm.name} is back after ${((arm.chase + 1) * STEP).toFixed(2)} s.`);
        else finish(arm, `Arm ${arm.name} never let go.`);
      } else if (++arm.chase === 500) finish(arm, `Arm ${arm.name} is not back after 10 s.`);
    }
  }
  steps++;
  sides?.count?.();
}
function finish(arm, text) {
  arm.chase = null;
  const open = arms.filter((other) => other.chase !== null).length;
  if (!arm.many) say(text);
  else if (!open) say(`All arms are back; the last took ${text.match(/[\d.]+ s/)?.[0] ?? "no time"}.`);
}
function chase(some) { for (const arm of some) Object.assign(arm, { chase: 0, many: some.length > 1, lost: arm.lost ?? false }); }

// ------------------------------------------------------------------- what the reader does to an arm
function pullGoals(degrees = 90) {
  for (const arm of shown()) { arm.angle += degrees; arm.placeGoal(); arm.lost = false; }
  chase(shown());
  say(chosen() ? `The goal of arm ${chosen().name} jumped by ${Math.abs(degrees)} degrees.` : `All goals jumped by ${Math.abs(degrees)} degrees.`);
}
function flickHands() {
  for (const arm of shown()) {
    const turn = 2 * Math.PI * Math.random();
    Object.assign(arm, { kick: 8, way: [Math.cos(turn), 0.6, Math.sin(turn)], lost: false });
  }
  say(chosen() ? `A push on the hand of arm ${chosen().name}.` : "A push on every hand.");
}
function holdGoal() { // the goal is where the reader holds it, whatever its own speed
  const { arm, at } = held, far = Math.min(Math.hypot(at[0], at[2]), 16);
  arm.orbit = Math.abs(far - GOAL_ORBIT) < 1.2 ? GOAL_ORBIT : far; // near its circle it stays on it
  arm.angle = Math.atan2(at[0], at[2]) * 180 / Math.PI;
  for (const one of together(arm)) { Object.assign(one, { angle: arm.angle, orbit: arm.orbit }); one.placeGoal(); }
}
function choose(number, seconds = 0.9) {
  state.arm = number;
  byId("pull").textContent = number ? "Pull goal away" : "Pull goals away";
  byId("flick").textContent = number ? "Push hand" : "Push hands";
  frame(seconds);
  tellCritic();
  remember();
}
function arrange() {
  const apart = Math.max(23, 2 * GOAL_ORBIT + RADIUS.ring * data.world.size + 1);
  scene.spread(arms.length, apart, sides ? 2 : 1).forEach((place, k) => { arms[k].place = place; });
}
let framed = null; // the camera, unless the reader turned it
function frame(seconds = 0) {
  const places = shown().map(({ place }) => place);
  framed = scene.framing(places, FRAMED[places.length > 1 ? "many" : "one"]);
  scene.fly(framed, still.matches ? 0 : seconds);
}
const isTurned = () => !scene.flight && scene.camera !== framed;
function train(index) {
  actor = actors[clamp(index, 0, actors.length - 1)];
  state.episode = actor.label;
  byId("episode").value = actors.indexOf(actor);
  byId("episode").setAttribute("aria-valuetext", actor.title);
  byId("trained").textContent = actor.title[0].toUpperCase() + actor.title.slice(1);
  mark();
  tellCritic();
  forget();
  remember();
}
function mark() { // where the actor stands on the curve
  document.querySelectorAll("#stops span").forEach((span, k) => span.toggleAttribute("data-on", actors[k] === actor));
  const { episode, rate } = actor, score = rate ?? (episode ? data.scores[episode - 1] : actor.score);
  byId("here").hidden = !Number.isFinite(score ?? NaN) || episode === null;
  Object.assign(byId("here").style, { left: `${100 * actors.indexOf(actor) / Math.max(actors.length - 1, 1)}%`, top: `${100 - 100 * score / MOST}%` });
}
function set(name, value) {
  state[name] = value;
  if (name === "acting") {
    byId("acting").textContent = `Switch actor ${value ? "off" : "on"}`;
    for (const arm of arms) arm.chase = null;
    forget();
  } else if (name === "slow") byId("slow").textContent = value < 1 ? "Speed up" : "Slow down";
  else if (name === "playing") byId("play").textContent = value ? "Pause" : "Play";
  else {
    byId(name).value = value;
    byId(`${name}-value`).textContent = `${+Number(value).toFixed(2)} ${WORLD.find(([known]) => known === name)[5]}`;
    forget();
  }
  remember();
}

// A link such as #episode=2&arm=7&gravity=20 sets the scene; what it does not name is as at first.
function read(hash) {
  const wanted = new URLSearchParams(hash.replace(/^#/, "")), odd = new Set([...wanted.keys()].filter((name) => name !== "rival" && !Object.hasOwn(DEFAULTS, name) && !(learning && Object.hasOwn(learning.names, name))));
  const number = (name, low, high) => {
    const value = Number(wanted.get(name) ?? DEFAULTS[name]), isKnown = value >= low && value <= high;
    if (!isKnown) odd.add(name);
    return isKnown ? value : DEFAULTS[name];
  };
  for (const [name, , low, high] of WORLD) set(name, number(name, low, high));
  set("slow", number("slow", 0.1, 4));
  set("acting", wanted.get("acting") !== "false");
  stand(null);
  if (learning && wanted.has("learn")) learning.read(wanted);
  const index = stored || wanted.has("episode") ? actors.findIndex(({ label }) => label === (wanted.get("episode") ?? DEFAULTS.episode)) : actors.length - 1;
  if (index < 0) odd.add("episode");
  train(index < 0 ? stored ? data.first : actors.length - 1 : index);
  choose(Math.round(number("arm", 0, arms.length)), quiet ? 0 : 0.9);
  if (wanted.has("rival")) compareWith(wanted.get("rival")) || odd.add("rival");
  if (odd.size) say(`This link asks for what is not here: ${[...odd].join(", ").slice(0, 60)}. ${index < 0 ? `The ${actor.label} actor plays` : "The rest is as it says"}.`);
}
let quiet = true; // while the page is built
function remember() {
  if (quiet) return;
  const changed = Object.keys(DEFAULTS).filter((name) => String(state[name]) !== String(DEFAULTS[name]) && (stored || name !== "episode"));
  const words = [learnLink, ...changed.map((name) => `${name}=${state[name]}`), sides?.label && `rival=${sides.label}`].filter(Boolean);
  try { history.replaceState(null, "", `#${words.join("&")}`); } catch { /* within a notebook */ }
}

// ------------------------------------------------------------------- the pointer, touch and keys
function under(x, y) { // what can be dragged at a pixel, or which arm is there
  let best = null;
  scene.look();
  for (const arm of arms) {
    const near = (point, radius, kind, first) => {
      const [px, py, depth, scale] = scene.project(upright(point, arm.place)), far = Math.hypot(px - x, py - y) - Math.max(radius * scale, 11);
      if (depth > 1 && far < 0 && (!best || far - first < best.far)) best = { arm, kind, far: far - first, depth };
    };
    if (!chosen() || chosen() === arm) {
      near(arm.hand, HAND_RADIUS, "hand", chosen() ? 1e4 : 0); // the small thing before what holds it
      near(arm.goal, state.size / 2, "goal", 0);
    }
    near([0, 0, 0], 2, "arm", -1e3);
    near(arm.elbow, 1.5, "arm", -1e3);
    near([0, FLOOR / 2, 0], 3, "arm", -1e4);
  }
  return best;
}
function drag(x, y) { // the held thing follows the pointer, goals at their height, hands in the picture's plane
  const { arm, kind } = held, place = arm.place;
  let point = kind === "goal" ? scene.onLevel(x, y, place[2] + GOAL_HEIGHT) : add(scene.view.eye, scene.ray(x, y), held.depth);
  if (!point) return;
  point = sub(point, place);
  held.at = [point[0], point[2], point[1]];
  if (kind === "goal" && !state.playing) holdGoal();
}
function listen() {
  const view = byId("view"), fingers = new Map(), spot = (event) => {
    const box = view.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let pressed = null;
  view.addEventListener("touchstart", (event) => { // goals and hands are dragged; else one finger scrolls the page
    if (event.touches.length > 1 || ["goal", "hand"].includes(under(...spot(event.touches[0]))?.kind)) event.preventDefault();
  }, { passive: false });
  view.addEventListener("pointerdown", (event) => {
    view.focus({ preventScroll: true });
    const [x, y] = spot(event);
    fingers.set(event.pointerId, [x, y]);
    const found = fingers.size === 1 ? under(x, y) : null;
    pressed = { x, y, found, camera: scene.camera };
    endHint();
    try { view.setPointerCapture(event.pointerId); } catch { /* it is up already */ }
  });
  view.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId), [x, y] = spot(event);
    if (!before) {
      view.style.cursor = { goal: "pointer", hand: "pointer", arm: "zoom-in" }[under(x, y)?.kind] ?? "grab";
      return;
    }
    fingers.set(event.pointerId, [x, y]);
    if (fingers.size > 1) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const apart = ([a, b]) => Math.hypot(a - other[0], b - other[1]) || 1;
      scene.zoom(apart(before) / apart([x, y]));
    } else if (held) drag(x, y);
    else if (pressed.moved || Math.hypot(x - pressed.x, y - pressed.y) > (event.pointerType === "touch" ? 12 : 5)) { // a finger may scroll
      if (!pressed.moved && pressed.found && pressed.found.kind !== "arm") {
        held = { ...pressed.found, at: pressed.found.arm[pressed.found.kind] };
        Object.assign(held.arm, { lost: false, chase: null });
        drag(x, y);
      } else scene.orbit(0.35 * (x - before[0]), 0.35 * (y - before[1]));
      pressed.moved = true;
    }
  });
  const up = (event) => {
    fingers.delete(event.pointerId);
    if (held) { chase([held.arm]); held = null; }
    else if (event.type === "pointercancel" && event.pointerType === "touch" && pressed && !fingers.size) scene.camera = pressed.camera; // it scrolled
    else if (event.type === "pointerup" && pressed && !pressed.moved && pressed.found) {
      choose(Number(pressed.found.arm.name));
      say(`Arm ${pressed.found.arm.name}, ${actor.title}.`);
    }
    pressed = null;
  };
  view.addEventListener("pointerup", up);
  view.addEventListener("pointercancel", up);
  view.addEventListener("wheel", (event) => { // it belongs to the reader's page until the scene was clicked
    if (document.activeElement !== view) return;
    event.preventDefault();
    scene.zoom(Math.exp(clamp(event.deltaY, -200, 200) * 0.0015));
  }, { passive: false });
  const next = (by) => { choose((state.arm + by + arms.length + 1) % (arms.length + 1)); say(chosen() ? `Arm ${chosen().name}, ${actor.title}.` : "All arms."); };
  const keys = {
    ArrowLeft: () => scene.orbit(-5, 0), ArrowRight: () => scene.orbit(5, 0), ArrowUp: () => scene.orbit(0, 4), ArrowDown: () => scene.orbit(0, -4),
    "+": () => scene.zoom(1 / 1.15), "=": () => scene.zoom(1 / 1.15), "-": () => scene.zoom(1.15),
    n: () => next(1), p: () => next(-1), Escape: () => (sides?.torques ? stand(null) : state.arm || isTurned() ? choose(0) : view.blur()),
    "[": () => pullGoals(-30), "]": () => pullGoals(30), f: flickHands, a: () => set("acting", !state.acting),
    s: () => set("slow", state.slow < 1 ? 1 : 0.25), " ": () => set("playing", !state.playing), r: () => { startAgain(); frame(0.9); },
    ".": () => { set("playing", false); do tick(); while (steps % STEPS_PER_DECISION); },
  };
  view.addEventListener("keydown", (event) => {
    if (steer(event, 1)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    endHint();
    keys[event.key]();
  });
  addEventListener("keyup", (event) => steer(event, 0));
  listenBeside();
  for (const [name, key] of [["play", " "], ["slow", "s"], ["acting", "a"], ["flick", "f"], ["reset", "r"]]) byId(name).addEventListener("click", keys[key]);
  byId("pull").addEventListener("click", () => pullGoals());
  byId("all").addEventListener("click", () => choose(0));
  byId("episode").addEventListener("input", (event) => { train(Number(event.target.value)); say(`The actor: ${actor.title}.`); });
  byId("copy").addEventListener("click", () => (navigator.clipboard?.writeText(location.href) ?? Promise.reject()).then(
    () => say("Copied: a link to this scene."), () => say("The address bar has the link to this scene.")));
  document.addEventListener("click", (event) => { // links also work within a notebook's frame
    const link = event.target.closest?.('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    endHint();
    startAgain();
    read(link.getAttribute("href"));
    set("playing", true);
    byId("stage").scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
    say(link.parentElement.textContent.trim());
  });
  addEventListener("hashchange", () => read(location.hash));
  if (data.live) addEventListener("message", learn);
}

// ------------------------------------------------------------------------- what the page tells
function shareOf(some) { // of the last seconds in which they touched their goals
  let share = 0;
  for (const arm of some) {
    const count = Math.min(arm.lived, RECENT);
    let sum = 0;
    for (let k = 0; k < count; k++) sum += arm.recent[k];
    share += count ? sum / count / some.length : 0;
  }
  return share;
}
function tell() {
  if (sides) return tellSides();
  const some = shown(), touching = some.filter((arm) => arm.touches).length;
  const share = shareOf(some), seconds = Math.min(some[0].lived, RECENT) * STEP, who = chosen()
    ? `Arm ${chosen().name} ${touching ? "touches its goal" : "is apart from its goal"}` : `${touching} of ${arms.length} arms touch their goals`;
  const text = `${state.acting ? "" : "The actor is off. "}${who}. Score of the last ${seconds.toFixed(0)} s: ${(MOST * share).toFixed(1)}`;
  write(learning?.isRunning && !stored ? `${text}\n${learning.told}` : text);
}

function write(text) { if (byId("status").textContent !== text) byId("status").textContent = text; }

const COLORS = [[38, 20, 74], [92, 30, 128], [170, 50, 110], [232, 104, 62], [252, 190, 70], [252, 248, 190]];
function colorOf(share) {
  const at = clamp(share, 0, 1) * (COLORS.length - 1), k = Math.min(Math.floor(at), COLORS.length - 2);
  return COLORS[k].map((value, c) => value + (at - k) * (COLORS[k + 1][c] - value));
}
const GRID = 21, patch = Object.assign(document.createElement("canvas"), { width: GRID, height: GRID }), grid = { values: new Float32Array(GRID * GRID), row: GRID };
function tellCritic() {
  byId("critic").hidden = !critic || !stored;
  byId("landscape").hidden = !chosen();
  if (!chosen()) byId("critic-note").textContent = "The critic is the agent's second network: it estimates the reward that is still to come. Click an arm, and see what it expects of other torques on the upper arm, live.";
  grid.row = GRID;
}
function landscape() { // a few rows for each picture
  const arm = chosen();
  if (!critic || !arm || !stored) return;
  if (grid.row >= GRID) Object.assign(grid, { row: 0, seen: arm.observe(state), action: [...arm.action] });
  for (let end = Math.min(grid.row + 3, GRID); grid.row < end; grid.row++) for (let j = 0; j < GRID; j++) {
    grid.values[grid.row * GRID + j] = forward(critic, grid.seen, [j / (GRID - 1) * 2 - 1, 1 - grid.row / (GRID - 1) * 2, grid.action[2], grid.action[3]])[0];
  }
  if (grid.row < GRID) return;
  const canvas = byId("landscape"), pen = canvas.getContext("2d"), { values } = grid, size = canvas.width, cell = size / GRID;
  const low = Math.min(...values), high = Math.max(...values), small = patch.getContext("2d"), pixels = small.createImageData(GRID, GRID);
  values.forEach((value, k) => pixels.data.set([...colorOf((value - low) / Math.max(high - low, 1e-9)), 255], 4 * k));
  small.putImageData(pixels, 0, 0);
  pen.drawImage(patch, 0, 0, size, size);
  const mark = (x, y, draw, fill) => {
    pen.beginPath();
    draw(cell / 2 + (x + 1) / 2 * (size - cell), cell / 2 + (1 - y) / 2 * (size - cell));
    Object.assign(pen, { fillStyle: fill, strokeStyle: "#000", lineWidth: 2.5 });
    pen.fill();
    pen.stroke();
  };
  const best = values.indexOf(high);
  mark(best % GRID / (GRID - 1) * 2 - 1, 1 - Math.floor(best / GRID) / (GRID - 1) * 2,
    (x, y) => { pen.moveTo(x, y - 10); pen.lineTo(x + 10, y + 8); pen.lineTo(x - 10, y + 8); pen.closePath(); }, "#fff");
  mark(grid.action[0], grid.action[1], (x, y) => pen.arc(x, y, 10, 0, 7), "#40a4ff");
  byId("critic-note").textContent = `Values from ${low.toFixed(1)} (dark) to ${high.toFixed(1)} (bright). Right: torque about x, up: torque about z, `
    + "from -1 to 1, on the upper arm. Dot: what the actor chose. Triangle: the largest value. The critic is that of the best actor.";
}

function arcs(arm) { // torques as curved arrows about the joints, in the sense in which they turn
  return [[[0, 0, 0], arm.action.slice(0, 2), 2.6], [arm.elbow, arm.action.slice(2, 4), 2]].map(([at, [x, z], radius]) => {
    const size = Math.hypot(x, z), points = [];
    if (size < 0.03) return points;
    const u = [0, 1, 0], v = [-z / size, 0, x / size], sweep = Math.min(size, 1.42) * 3.6; // v: the torque's axis x u
    for (let k = 0; k <= 20; k++) {
      const turn = sweep * (k / 20 - 0.5);
      points.push(upright(add(at, add(u.map((c) => c * Math.cos(turn)), v, Math.sin(turn)), radius), arm.place));
    }
    return points;
  });
}
function picture() {
  const late = state.playing ? clock / STEP : 1, circle = [...Array(49).keys()].map((k) => k * Math.PI / 24);
  const drawn = arms.map((arm) => {
    if (!state.playing) arm.touch(state); // the reader may have moved its goal
    const now = [arm.elbow, arm.hand, arm.goal], before = arm.before ?? now; // between two steps
    const [elbow, hand, goal] = now.map((point, k) => upright(add(before[k], sub(point, before[k]), late), arm.place));
    const one = !!chosen() && shown().includes(arm), grabbed = held?.arm === arm;
    return {
      place: arm.place, elbow, hand, goal, touches: arm.touches, name: nameOf(arm), opacity: one ? 1 : others, second: !!sides && isSecond(arm),
      path: (one || grabbed) && circle.map((a) => upright([arm.orbit * Math.sin(a), GOAL_HEIGHT, arm.orbit * Math.cos(a)], arm.place)),
      trail: one && arm.trail.map((point) => upright(point, arm.place)), torques: one ? arcs(arm) : [],
      pull: grabbed && held.kind === "hand" && upright(held.at, arm.place),
    };
  });
  scene.draw(drawn, dark.matches ? DARK : LIGHT, state.size);
}

// ------------------------------------------------------------------------------------ the beginning
function build() {
  for (const [name, words, low, high, step] of WORLD) {
    const label = document.createElement("label");
    label.innerHTML = `${words} <output id="${name}-value"></output><input id="${name}" type="range" min="${low}" max="${high}" step="${step}">`;
    byId("world").append(label);
    byId(name).addEventListener("input", (event) => set(name, Number(event.target.value)));
  }
  const back = Object.assign(document.createElement("button"), { type: "button", textContent: "Set as in training" });
  back.addEventListener("click", () => WORLD.forEach(([name]) => set(name, DEFAULTS[name])));
  byId("world").append(back);
  if (innerWidth < 900 || document.body.classList.contains("embedded")) byId("world").open = false;
  for (const prompt of byId("stored-prompts").children) { // not of what this page lacks
    const wanted = new URLSearchParams(prompt.querySelector("a").hash.slice(1)), episode = wanted.get("episode") ?? DEFAULTS.episode;
    prompt.hidden = wanted.get("arm") > arms.length || !actors.some(({ label }) => label === episode);
  }
  curve();
}
function curve() { // kept actors stand at equal distances on its axis, and the episodes between two of them
  const known = actors.map(({ episode }) => episode), end = Math.max(actors.length - 1, 1), x = (episode) => {
    const k = Math.max(known.findLastIndex((other) => other <= episode), 0), next = Math.min(k + 1, known.length - 1);
    return k + (next > k ? (episode - known[k]) / (known[next] - known[k]) : 0);
  };
  const along = (scores) => (known.includes(null) ? [] : scores.slice(0, known.at(-1))).map((score, k) => `${x(k + 1)},${MOST - score}`);
  const points = along(data.scores), before = along(data.before ?? []), svg = document.querySelector("#curve svg");
  svg.setAttribute("viewBox", `0 0 ${end} ${MOST}`);
  if (actors.at(-1).rate !== undefined) points.push(`${end},${MOST - actors.at(-1).rate}`); // of the episode that goes on
  const line = (score, dash) => `<line x1="0" x2="${end}" y1="${MOST - score}" y2="${MOST - score}" stroke-dasharray="${dash}"/>`;
  const second = along(data.beside ?? []);
  svg.innerHTML = `${line(0, "none")}${line(SOLVED, "4 4")}<polyline class="second" points="${second.join(" ")}"/><polyline class="before" points="${before.join(" ")}"/><polyline points="${points.join(" ")}"/>`;
  byId("curve-note").textContent = points.length ? "The line: scores in training, with noise. Dashed: 30, which counts as solved. Below: episodes." + (second.length ? " The other color: the learner beside it." : before.length ? " Gray: what learned before this." : "") : "";
  tellRivals();
  byId("episode").max = end;
  byId("training").hidden = actors.length < 2;
  byId("stops").replaceChildren(...actors.map(({ label, episode }, k) => {
    const isShown = actors.length < 12 || [0, 5, 10, 20, 50, 100, 150, 200].includes(episode);
    return Object.assign(document.createElement("span"), { textContent: isShown ? label : "", style: `left: ${100 * k / end}%` });
  }));
}
function learn({ data: news }) { // a newer actor, from the notebook in which it trains
  if (!Array.isArray(news?.scores) || !news.network) return;
  const episode = news.scores.length, isNewest = actor === actors.at(-1);
  data.scores = news.scores;
  const newest = { label: String(episode), episode, network: network(news.network) };
  actors.push({ ...newest, title: titleOf(newest) });
  curve();
  train(isNewest ? actors.length - 1 : actors.indexOf(actor)); // a reader who looks at an older one stays with it
  if (isNewest) say(`After ${actor.title}: score ${data.scores.at(-1).toFixed(1)}.`);
}

// A hand that drags a goal once, so that nobody has to read that goals can be dragged.
const hint = { passed: 0, isOver: data.live || still.matches || location.hash.length > 1 };
function showHow(seconds) {
  const arm = arms[Math.floor(0.6 * arms.length)], share = clamp((hint.passed += seconds) - 3, 0, 2) / 2;
  if (share === 1) {
    endHint();
    say("Now you: drag a goal.");
  } else if (share) {
    hint.angle ??= arm.angle;
    const turn = (hint.angle + 60 * share * share * (3 - 2 * share)) * Math.PI / 180;
    held = { arm, kind: "goal", isHint: true, at: [GOAL_ORBIT * Math.sin(turn), GOAL_HEIGHT, GOAL_ORBIT * Math.cos(turn)] };
    const [x, y] = scene.project(upright(arm.goal, arm.place));
    byId("hand").removeAttribute("hidden");
    Object.assign(byId("hand").style, { left: `${x}px`, top: `${y}px` });
  }
}

function endHint() {
  hint.isOver = true;
  byId("hand").toggleAttribute("hidden", true);
  if (held?.isHint) held = null;
}

let last = performance.now();
const frames = { count: 0, since: last, rate: 0, spent: 0 };
function loop(now) {
  if (learning?.isRunning && now - last < Math.max(64, 4 * frames.spent)) return requestAnimationFrame(loop); // its thread needs the processor
  const passed = clamp((now - last) / 1000, 0, 0.1), begin = performance.now(); // a hidden tab waits
  last = now;
  if (resize()) { arrange(); frame(); }
  scene.move(passed);
  others += ((chosen() ? 0.12 : 1) - others) * (still.matches ? 1 : Math.min(5 * passed, 1));
  if (!chosen() && others > 0.99) others = 1;
  if (!hint.isOver && state.playing) showHow(passed);
  if (state.playing) for (clock += passed * state.slow; clock >= STEP; clock -= STEP) tick();
  picture();
  landscape();
  byId("all").disabled = !chosen() && !isTurned();
  frames.count++;
  frames.spent = performance.now() - begin;
  requestAnimationFrame(loop);
}
function resize() {
  const { clientWidth, clientHeight } = byId("view");
  return scene.resize(clientWidth || 1, clientHeight || 1, devicePixelRatio || 1);
}
setInterval(() => { // however few pictures there are
  const now = performance.now(), passed = now - frames.since;
  tell();
  if (document.hidden || passed > 3000) Object.assign(frames, { count: 0, since: now });
  else if (passed > 1000) {
    Object.assign(frames, { rate: 1000 * frames.count / passed, count: 0, since: now });
    if (frames.rate < 45 && !learning?.isRunning) scene.sharpest = 1; // too slow here for a fine picture
  }
}, 200);

let learning = null;
if (data.learning) learning = new Learning();
document.querySelector("main").hidden = false;
build();
startAgain();
listen();
resize();
arrange();
read(location.hash);
if (learning?.beginsByItself) learning.start();
set("playing", state.playing);
tell();
quiet = false;
requestAnimationFrame(loop);
window.page = { data, state, arms, get actors() { return actors; }, get sides() { return sides; }, stand, compareWith, learning, scene, frames, tick, train, choose, set, read, pullGoals, under }; // for the browser's console
