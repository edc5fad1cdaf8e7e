// The study's curves: one combination chosen, the one chosen before it, and the others behind them.
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 12, 8, 38]; // margins, pixels
const GROUPS = { task: Object.fromEntries(Object.entries(data.tasks).map(([name, { title }]) => [name, title])),
  n_step: { 0: "1", 1: "3" }, replay: { 0: "uniform", 1: "prioritized" }, noisy_layers: { 0: "off", 1: "on" } };
const TITLES = { task: "Task", n_step: "Steps n", replay: "Replay", noisy_layers: "NoisyNet" };
const state = { task: "small_goals", n_step: 0, replay: 0, noisy_layers: 0, before: null, others: true, runs: false };
const place = ({ n_step, replay, noisy_layers }) => 4 * n_step + 2 * replay + noisy_layers;

const middle = (values) => { // the middle half of them, as the interquartile mean takes it
  const cut = Math.floor(values.length / 4);
  return [...values].sort((a, b) => a - b).slice(cut, values.length - cut);
};
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
function measures(task, cell) { // interquartile means over the runs, as study.cells_table has them
  const runs = data.tasks[task].scores[cell].map((run) => run.map((score) => score * data.unit / data.max));
  return { area: mean(middle(runs.map(mean))), end: mean(middle(runs.map((run) => run.at(-1)))) };
}
function draw() {
  const { episodes, scores } = data.tasks[state.task], chosen = place(state);
  tell(chosen);
  const [svg, width, height] = canvas("curves");
  const x = (episode) => LEFT + (width - LEFT - RIGHT) * episode / episodes.at(-1), y = (score) => height - BOTTOM - (height - TOP - BOTTOM) * score / 40;
  const line = (values) => values.map((value, k) => `${x(episodes[k]).toFixed(1)},${y(value * data.unit).toFixed(1)}`).join("L");
  for (const score of [0, 10, 20, 30, 40]) {
    add(svg, "line", { x1: LEFT, x2: width - RIGHT, y1: y(score), y2: y(score) });
    add(svg, "text", { x: LEFT - 14, y: y(score) }, score);
  }
  for (const episode of episodes.filter((_, k) => k % 2)) add(svg, "text", { x: x(episode), y: height - BOTTOM + 12 }, episode);
  add(svg, "text", { x: (LEFT + width) / 2, y: height - 9 }, "episode of training");
  add(svg, "text", { transform: `translate(8 ${y(20)}) rotate(-90)` }, "score without noise");
  const cells = [state.before, chosen].filter((cell) => cell !== null), all = state.others ? [...scores.keys()] : [];
  const of = (cell) => cell === chosen ? "first" : cell === state.before ? "second" : "other";
  for (const cell of new Set([...all, ...cells].sort((a, b) => cells.indexOf(a) - cells.indexOf(b)))) {
    const halves = episodes.map((_, k) => middle(scores[cell].map((run) => run[k])));
    if (of(cell) !== "other") {
      add(svg, "path", { class: "band", "data-of": of(cell), d: `M${line(halves.map((half) => half[0]))}L${line(halves.map((half) => half.at(-1))).split("L").reverse().join("L")}Z` });
      if (state.runs && cell === chosen) for (const run of scores[cell]) add(svg, "path", { class: "run", "data-of": "first", d: `M${line(run)}` });
    }
    add(svg, "path", { class: of(cell) === "other" ? "" : "mean", "data-of": of(cell), d: `M${line(halves.map(mean))}` });
  }
}
function tell(chosen) { // the numbers, and which switches are on
  for (const input of document.querySelectorAll("#switches input"))
    input.checked = input.type === "checkbox" ? state[input.name] : input.value === String(state[input.name]);
  byId("said").innerHTML = [["first", "chosen", chosen], ["second", "before", state.before]].filter(([, , cell]) => cell !== null).map(([name, title, cell]) => {
    const { area, end } = measures(state.task, cell);
    return `<tr data-of="${name}"><th>${title}</th><td>${GROUPS.n_step[cell >> 2]}</td><td>${GROUPS.replay[cell >> 1 & 1]}</td><td>${GROUPS.noisy_layers[cell & 1]}</td>`
      + `<td class="area">${area.toFixed(3)}</td><td class="end">${end.toFixed(3)}</td></tr>`;
  }).join("");
}
function set(changes) {
  const before = place(state);
  Object.assign(state, changes);
  if (place(state) !== before) state.before = before;
  draw();
}

byId("switches").innerHTML = Object.entries(GROUPS).map(([group, names]) => `<fieldset><legend>${TITLES[group]}</legend>${Object.entries(names).map(([value, title]) =>
  `<label><input type="radio" name="${group}" value="${value}">${title}</label>`).join("")}</fieldset>`).join("")
  + '<fieldset><legend>Show</legend><label><input type="checkbox" name="others">all eight</label><label><input type="checkbox" name="runs">single runs</label></fieldset>';
byId("switches").addEventListener("change", ({ target: { name, type, value, checked } }) =>
  set({ [name]: type === "checkbox" ? checked : name === "task" ? value : Number(value) }));
new ResizeObserver(draw).observe(byId("curves"));
draw();
window.figure = { state, set, measures };
