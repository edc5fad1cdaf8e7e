// The agent that learns in the page: its thread, its controls, and its actors on the slider. A part of page.js.
const YES = ["no", "yes"];
const CHOICES = [ // name in links, words, setting, values, and their names
  ["practice", "Arms that practice", "arms", [1, 5, 20]],
  ["mirrors", "It sees each arm in its mirror", "mirrors", [0, 1], YES],
  ["n", "Rewards that it looks ahead before it asks the critic (n)", "n_step", [1, 3, 5]],
  ["alpha", "Surprises come up again more often (alpha; 0: all alike)", "priority_exponent", [0, 0.6]],
  ["sigma", "Noise in its weights (NoisyNet)", "noisy_layers", [0, 1], YES],
  ["explore", "Noise on its torques", "gaussian_sigma", [0, 0.1, 0.3, 0.6]],
  ["steps", "Gradient steps of an update", "gradient_steps", [10, 20, 40]],
  ["goal", "Diameter of its goals, m", "size", [2, 3.5, 5, 8]],
  ["pay", "It is paid at every ... decision", "every", [1, 10, 30]],
  ["beside", "Beside it, with the same seed, one with n = 1, alpha = 0 and no noise in its weights", "beside", [0, 1], YES]];
const PLAIN = { n_step: 1, priority_exponent: 0, noisy_layers: 0 };
const EPISODES = 14; // at most
const encode = (numbers) => btoa(Array.from(new Uint8Array(numbers.slice().buffer), (byte) => String.fromCharCode(byte)).join(""));

function player(failed) { // a machine that plays actors, once it is loaded; it holds the numbers of one at a time
  const { modules, programs } = data.learning, made = { machine: null, held: null };
  Machine.load(programs, modules, { uniform: Math.random, normal }).then((machine) => { made.machine = machine; }, (error) => failed({ error }));
  return made;
}
function acting(player, taken) { // an actor with these numbers; null: with those that the machine began with
  return { taken, act: (seen) => { // actions for observations, some in each call
    const { machine } = player, size = TASK.ACTION_SIZE, actions = [];
    if (!machine) return seen.map(() => new Float32Array(size));
    if (player.held !== taken) machine.put("act", player.held = taken);
    const { numbers, shape: [most] } = machine.programs.act.inputs[0];
    for (let first = 0; first < seen.length; first += most) {
      const some = seen.slice(first, first + most);
      some.forEach((one, k) => numbers.set(one, k * one.length));
      const [found] = machine.call("act");
      some.forEach((_, k) => actions.push(found.slice(k * size, (k + 1) * size)));
    }
    return actions;
  } };
}

class Pupil { // a learner in a thread of its own, and the actors that it had
  constructor(seed, choices, heard) {
    this.newest = { label: "now", episode: 0, title: "the newest actor", network: null };
    Object.assign(this, { scores: [], actors: [this.newest], player: player(heard), saved: null });
    const url = URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onerror = (event) => heard({ error: event.message ?? "no thread" });
    this.worker.onmessage = ({ data: news }) => { if (this.worker) heard(news, news.actor && this.take(news)); };
    this.worker.postMessage({ learning: data.learning, seed, choices, episodes: EPISODES });
  }

  take({ score, decision, actor: numbers, sum }) { // whether these news have another actor for the slider
    const { newest, scores, actors } = this, isFirst = !newest.network, episode = scores.length + (score === null ? 0 : 1);
    if (isFirst) actors.unshift({ label: "0", episode: 0, title: "not at all, random weights", network: acting(this.player, numbers) });
    newest.network = acting(this.player, numbers);
    newest.episode = episode + decision / EPISODE_DECISIONS + 1e-3;
    newest.rate = decision < 100 ? undefined : sum / decision * EPISODE_DECISIONS;
    if (score === null) return isFirst;
    scores.push(score);
    const learned = { label: String(episode), episode, network: acting(this.player, numbers) };
    actors.splice(-1, 0, { ...learned, title: titleOf(learned) });
    return true;
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
    if (this.actors.length > 2 && this.actors.at(-1) === this.newest) this.actors.pop();
  }
}

class Learning {
  constructor() {
    const { settings, programs, arms: most } = data.learning, { act, td_errors: errors, learn: step } = programs.programs;
    const missing = { mirrors: !Object.keys(programs.state).some((path) => path.endsWith("frame.signs")),
      alpha: !errors || !step.inputs.some(({ name }) => name === "weights"), sigma: !act.inputs.some(({ name }) => name === "noise") };
    missing.beside = missing.alpha && missing.sigma;
    this.first = { ...settings, noisy_layers: Number(settings.noisy_layers), arms: most, mirrors: 1, size: data.world.size, every: 1, beside: 0 };
    this.choices = CHOICES.filter(([name]) => !missing[name]);
    this.names = Object.fromEntries([["learn"], ...this.choices].map(([name]) => [name, true]));
    Object.assign(this, { isRunning: false, isPaused: false, told: "", pupils: [], kept: { actors, scores: data.scores, story: byId("story").textContent }, run: null });
    for (const name of ["learning", "how"]) byId(name).hidden = false;
    for (const prompt of byId("learning-prompts").children) { // not of what this learner lacks
      const wanted = new URLSearchParams(prompt.querySelector("a")?.hash.slice(1));
      prompt.hidden = [...wanted.keys()].some((name) => !this.names[name]);
    }
    for (const [name, words, setting, values, names] of this.choices) {
      const label = document.createElement("label"), select = Object.assign(document.createElement("select"), { id: name });
      const all = [...new Set([...values, this.first[setting]])].filter((value) => name !== "practice" || value <= most);
      for (const value of all.sort((a, b) => a - b)) select.add(new Option(names?.[value] ?? value, value));
      select.value = this.first[setting];
      label.append(words, select);
      byId("choices").append(label);
    }
    byId("begin").addEventListener("click", () => this.start());
    byId("rest").addEventListener("click", () => { this.isPaused = !this.isPaused; this.steer(); });
    byId("pace").addEventListener("change", () => this.steer());
    byId("run").addEventListener("click", () => this.show(stored ? this.run : this.kept));
    byId("save").addEventListener("click", () => { const [{ worker, state }] = this.pupils; if (worker) worker.postMessage({ isSaved: true }); else this.save(state); });
    document.addEventListener("visibilitychange", () => this.steer());
    if (data.learned) Object.assign(actors[0], { title: data.learned, network: acting(player(() => {}), null) });
    this.hasStored = data.actors.some(({ network }) => network) || !!data.learned;
    this.prompt();
    this.steer();
    const isAble = runnable(data.learning.modules);
    this.beginsByItself = isAble && !data.learned && !still.matches && location.hash.length < 2 && !document.body.classList.contains("embedded");
    if (isAble) return;
    byId("begin").disabled = true;
    byId("progress").textContent = "This browser has no WebAssembly SIMD, which learning needs. Any browser of the last years has it. The stored actors play here.";
  }

  prompt() {
    byId("learning-prompts").hidden = stored && this.hasStored;
    byId("stored-prompts").hidden = !byId("learning-prompts").hidden;
  }

  read(wanted) { // of a link, such as #learn=3&pay=30
    const seed = Math.floor(Number(wanted.get("learn")));
    byId("seed").value = seed >= 0 && seed < 1e6 ? seed : 0;
    for (const [name, , setting] of this.choices) {
      const value = wanted.get(name) ?? String(this.first[setting]);
      byId(name).value = [...byId(name).options].some((option) => option.value === value) ? value : this.first[setting];
    }
    if (!byId("begin").disabled) this.start();
  }

  start() {
    for (const pupil of this.pupils) pupil.end();
    const seed = Math.max(0, Math.floor(Number(byId("seed").value) || 0)), choices = {}, link = [`learn=${seed}`];
    for (const [name, , setting] of this.choices) {
      choices[setting] = Number(byId(name).value);
      if (choices[setting] !== this.first[setting]) link.push(`${name}=${choices[setting]}`);
    }
    const before = this.run?.scores ?? [], pupils = [choices, ...(choices.beside ? [{ ...choices, ...PLAIN }] : [])].map(
      (own, k) => new Pupil(seed, own, (news, isNew) => this.pupils[k] === pupils[k] && this.hear(news, k, isNew)));
    this.pupils = pupils;
    this.run = { actors: pupils[0].actors, scores: pupils[0].scores, before, link: link.join("&"), isSolved: false, isFresh: true,
      story: "Nobody told these arms how to reach their goals. They learn it here and now, by trial and error, with the tutorial's own code." };
    Object.assign(this, { isRunning: true, isPaused: false });
    set("size", choices.size);
    this.steer();
    this.show(this.run);
    say("Random weights. Now it learns.");
  }

  steer() { // what the threads should do; a hidden tab waits
    for (const { worker } of this.pupils) worker?.postMessage({ isPaused: this.isPaused || document.hidden, speed: Number(byId("pace").value) });
    Object.assign(byId("rest"), { hidden: !this.isRunning, textContent: this.isPaused ? "Go on learning" : "Pause learning" });
    byId("begin").textContent = this.run ? "Begin again" : data.learned ? "Learn on" : "Learn from nothing";
  }

  show(run) { // these actors on the slider: the kept ones, or those that learned here
    stored = run === this.kept;
    ({ actors } = run);
    const [first, rival] = stored ? [] : this.pupils;
    Object.assign(data, { scores: run.scores, before: rival ? [] : run.before ?? [], beside: rival?.scores });
    learnLink = stored ? "" : run.link;
    Object.assign(byId("run"), { hidden: !this.run || !this.hasStored, textContent: stored ? "Show what learned here" : "Show the stored actors" });
    byId("save").hidden = stored;
    byId("story").textContent = run.story;
    this.prompt();
    stand(!rival ? null : { names: ["the whole agent", "without the three"],
      other: () => rival.actors.find(({ label }) => label === actor.label) ?? rival.actors.at(-1) });
    if (rival && first) choose(0);
    curve();
    train(stored ? data.first : actors.length - 1);
  }

  hear(news, k, isNew) { // from the thread of the first learner, or of the one beside it
    const { run } = this, { scores } = run;
    if (news.state) this.pupils[k].state = news.state;
    if (news.isSaved) return this.save(news.state);
    if (news.error) return this.end(`It cannot learn here: ${news.error}.`);
    if (news.isDone) {
      this.pupils[k].end();
      if (this.pupils.every(({ worker }) => !worker)) this.end(`${byId("progress").textContent} It has finished.`);
      return;
    }
    if (k) return stored || curve();
    if (news.score !== null) {
      const solves = news.score >= SOLVED && !run.isSolved;
      run.isSolved ||= solves;
      say(`Episode ${scores.length}: ${news.score.toFixed(1)} points.${solves ? ` More than ${SOLVED}, after ${news.seconds.toFixed(0)} seconds of learning.` : ""}`);
    }
    this.told = `${this.isPaused ? "Learning waits" : "Learning"}: ${news.seconds.toFixed(0)} s, episode ${scores.length + 1}`;
    byId("progress").textContent = `${this.told}, ${news.updates.toLocaleString("en")} gradient steps.${scores.length ? ` Scores: ${scores.map((score) => score.toFixed(1)).join(", ")}.` : ""}`;
    if (stored) return;
    curve();
    const { newest } = this.pupils[0];
    if (isNew) train(actor === newest || run.isFresh ? actors.length - 1 : actors.indexOf(actor));
    else mark();
    run.isFresh = false;
  }

  end(text) {
    const wasNewest = actor === this.pupils[0]?.newest;
    this.isRunning = false;
    for (const pupil of this.pupils) pupil.end();
    byId("progress").textContent = text;
    this.steer();
    if (stored) return;
    curve();
    train(wasNewest ? actors.length - 1 : actors.indexOf(actor));
  }

  save(state) { // this page, in which the learner begins with these numbers
    const { programs } = data.learning, places = Object.values(programs.state).map(({ place }) => place);
    const first = [...programs.first.filter(([place]) => !places.includes(place)), ...places.map((place, k) => [place, state[k].length, "numbers", encode(state[k])])];
    const { label, episode } = this.run.actors.at(-1), told = `a learner that was saved after ${this.run.scores.length} episodes`;
    const saved = { ...data, actors: [{ label, episode, network: null }], first: 0, critic: null, learned: told, before: undefined, beside: undefined,
      learning: { ...data.learning, programs: { ...programs, first } } };
    const text = JSON.stringify(saved).replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
    const made = new DOMParser().parseFromString(source, "text/html");
    for (const each of made.querySelectorAll("[name=description], [property$=description]")) each.remove();
    for (const each of made.querySelectorAll("#story, noscript span")) each.textContent = "Somebody let this learner learn in a page.";
    made.getElementById("data").textContent = text;
    const file = new Blob([`<!DOCTYPE html>\n${made.documentElement.outerHTML}`], { type: "text/html" });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: "learner.html" });
    link.click();
    URL.revokeObjectURL(link.href);
    say("Saved: a page that begins with this learner. Open it, or send it to a friend.");
  }
}
