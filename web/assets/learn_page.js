// The agent that learns in the page: its thread, its controls, and its actors on the slider. A part of page.js.
const CHOICES = [ // name in links, words, setting, values
  ["n", "Rewards that it looks ahead before it asks the critic (n)", "n_step", [1, 3, 5]],
  ["alpha", "Surprises come up again more often (alpha; 0: all alike)", "priority_exponent", [0, 0.6]],
  ["sigma", "Noise in its weights (sigma; 0: none)", "noisy_sigma", [0, 1]],
  ["explore", "Noise on its torques", "torque_noise", [0, 0.1, 0.3, 0.6]],
  ["steps", "Gradient steps of an update", "gradient_steps", [10, 20, 40]],
  ["goal", "Diameter of its goals, m", "size", [2, 3.5, 5, 8]],
  ["pay", "It is paid at every ... decision", "every", [1, 10, 30]]];
const EPISODES = 13; // at most

class Learning {
  constructor() {
    const { settings, programs } = data.learning, inputs = ["td_errors", "act"].map((name) => programs.programs[name]?.inputs ?? []);
    const missing = { alpha: !inputs[0].length, sigma: !inputs[1].some(({ name }) => name === "noise") };
    this.first = { ...settings, size: data.world.size, every: 1 };
    this.choices = CHOICES.filter(([name]) => !missing[name]);
    this.names = Object.fromEntries([["learn"], ...this.choices].map(([name]) => [name, true]));
    Object.assign(this, { isRunning: false, isPaused: false, told: "", kept: { actors, scores: data.scores, story: byId("story").textContent }, run: null });
    byId("learning").hidden = false;
    for (const [name, words, setting, values] of this.choices) {
      const label = document.createElement("label"), select = Object.assign(document.createElement("select"), { id: name });
      for (const value of [...new Set([...values, this.first[setting]])].sort((a, b) => a - b)) select.add(new Option(value, value));
      select.value = this.first[setting];
      label.append(words, select);
      byId("choices").append(label);
    }
    byId("begin").addEventListener("click", () => this.start());
    byId("rest").addEventListener("click", () => { this.isPaused = !this.isPaused; this.steer(); });
    byId("pace").addEventListener("change", () => this.steer());
    byId("run").addEventListener("click", () => this.show(stored ? this.run : this.kept));
    document.addEventListener("visibilitychange", () => this.steer());
    if (!globalThis.WebAssembly?.validate(SIMD)) {
      byId("begin").disabled = true;
      byId("progress").textContent = "This browser has no WebAssembly SIMD, which learning needs. Any browser of the last years has it. The stored actors play here.";
    }
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
    this.worker?.terminate();
    const seed = Math.max(0, Math.floor(Number(byId("seed").value) || 0)), choices = {}, link = [`learn=${seed}`];
    for (const [name, , setting] of this.choices) {
      choices[setting] = Number(byId(name).value);
      if (choices[setting] !== this.first[setting]) link.push(`${name}=${choices[setting]}`);
    }
    const before = this.run?.scores ?? [];
    const newest = { label: "now", episode: 0, title: "the newest actor", network: null };
    const run = this.run = { actors: [newest], scores: [], before, newest, link: link.join("&"), isSolved: false,
      story: "Nobody tells these arms how to reach their goals. They learn it here and now, by trial and error." };
    Object.assign(this, { isRunning: true, isPaused: false });
    const url = URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onerror = (event) => this.end(`It cannot learn here: ${event.message ?? "no thread"}.`);
    this.worker.onmessage = ({ data: news }) => run === this.run && this.hear(news);
    const { modules, ...about } = data.learning, random = { uniform: Math.random, normal };
    Machine.load(about.programs, modules, random).then((machine) => { run.machine = machine; }, (error) => this.end(`${error}`));
    this.worker.postMessage({ learning: about, modules, seed, choices, episodes: EPISODES });
    set("size", choices.size);
    this.steer();
    this.show(run);
    say("Random weights. Now it learns.");
  }

  steer() { // what the thread should do; a hidden tab waits
    this.worker?.postMessage({ isPaused: this.isPaused || document.hidden, speed: Number(byId("pace").value) });
    Object.assign(byId("rest"), { hidden: !this.isRunning, textContent: this.isPaused ? "Go on learning" : "Pause learning" });
    byId("begin").textContent = this.run ? "Begin again" : "Learn from nothing";
  }

  show(run) { // these actors on the slider: the kept ones, or those that learned here
    stored = run === this.kept;
    ({ actors } = run);
    Object.assign(data, { scores: run.scores, before: run.before ?? [] });
    learnLink = stored ? "" : run.link;
    Object.assign(byId("run"), { hidden: !this.run, textContent: stored ? "Show what learned here" : "Show the stored actors" });
    byId("story").textContent = run.story;
    byId("learning-prompts").hidden = stored;
    byId("stored-prompts").hidden = !stored;
    curve();
    train(stored ? data.first : actors.length - 1);
  }

  acting(taken) { // an actor with these numbers; the machine holds those of one at a time
    const { run } = this, network = { taken, act: (seen) => {
      const { machine } = run;
      if (!machine) return new Float32Array(TASK.ACTION_SIZE);
      if (run.held !== network.taken) machine.put("act", run.held = network.taken);
      machine.programs.act.inputs[0].numbers.set(seen);
      return machine.call("act")[0].subarray(0, TASK.ACTION_SIZE);
    } };
    return network;
  }

  hear(news) {
    const { run } = this, { scores, newest } = run;
    if (news.error) return this.end(`It cannot learn here: ${news.error}.`);
    if (news.isDone) return this.end(`${byId("progress").textContent} It has finished.`, true);
    const isFirst = !newest.network, episode = scores.length + (news.score === null ? 0 : 1);
    if (isFirst) run.actors.unshift({ label: "0", episode: 0, title: "not at all, random weights", network: this.acting(news.actor) });
    newest.network = this.acting(news.actor);
    newest.episode = episode + news.decision / EPISODE_DECISIONS + 1e-3;
    if (news.score !== null) {
      scores.push(news.score);
      run.actors.splice(-1, 0, { label: String(episode), episode, title: titleOf({ label: String(episode), episode, network: true }), network: this.acting(news.actor) });
      const solves = news.score >= SOLVED && !run.isSolved;
      run.isSolved ||= solves;
      say(`Episode ${episode}: ${news.score.toFixed(1)} points.${solves ? ` More than ${SOLVED}, after ${news.seconds.toFixed(0)} seconds of learning.` : ""}`);
    }
    newest.rate = news.decision < 100 ? undefined : news.sum / news.decision * EPISODE_DECISIONS;
    this.told = `${this.isPaused ? "Learning waits" : "Learning"}: ${news.seconds.toFixed(0)} s, episode ${scores.length + 1}`;
    byId("progress").textContent = `${this.told}, ${news.updates.toLocaleString("en")} gradient steps.${scores.length ? ` Scores: ${scores.map((score) => score.toFixed(1)).join(", ")}.` : ""}`;
    if (stored) return;
    curve();
    if (isFirst || news.score !== null) train(actor === newest || isFirst ? actors.length - 1 : actors.indexOf(actor));
    else mark();
  }

  end(text, isDone = false) {
    this.isRunning = false;
    this.worker?.terminate();
    byId("progress").textContent = text;
    if (isDone && this.run.actors.length > 2) {
      const wasNewest = actor === this.run.actors.pop();
      if (!stored) { curve(); train(wasNewest ? actors.length - 1 : actors.indexOf(actor)); }
    }
    this.worker = null;
    this.steer();
  }
}
