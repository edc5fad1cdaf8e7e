// A chain of cells with a reward of 1 behind the last one, and n-step updates of all cells at once.
const state = { n: 1, discount: 0.9, sweeps: 0 };
let timer = null;

function history({ n, discount, sweeps }) { // values after 0, 1, ... sweeps, until the first cell has one
  const rows = [new Array(data.states).fill(0)];
  while (rows.length <= sweeps && !rows.at(-1)[0]) rows.push(rows.at(-1).map((_, k, before) =>
    k + n < data.states ? discount ** n * before[k + n] : discount ** (data.states - 1 - k)));
  return rows;
}
function draw() {
  const rows = history(state), values = rows.at(-1), reached = values.filter((value) => value > 0).length, sweeps = rows.length - 1;
  state.sweeps = sweeps;
  for (const name of ["n", "discount"]) byId(name).value = byId(`${name}-now`).value = state[name];
  byId("n-now").value = `n = ${state.n}`;
  const after = `After ${sweeps} sweep${sweeps === 1 ? "" : "s"}`;
  byId("said").textContent = values[0] ? `${after} the first cell knows of the reward. Its value is ${+values[0].toPrecision(2)}, the discount factor to the power of ${data.states - 1}.`
    : `${after} value has reached ${reached} of ${data.states} cells. The first cell does not know of the reward yet.`;
  byId("sweep").disabled = values[0] > 0;
  byId("play").textContent = timer ? "Pause" : "Play";
  const cell = (value) => `<i${value > 0 ? " data-reached" : ""} style="background: color-mix(in srgb, var(--first) ${100 * value}%, var(--field))"></i>`;
  const cells = Array.from({ length: data.states + 1 }, (_, sweep) => [`<span>${sweep}</span>`,
    ...rows[sweep]?.map(cell) ?? new Array(data.states).fill("<i></i>"), `<b>${sweep ? "" : "1"}</b>`].join(""));
  byId("chain").style.gridTemplateColumns = `4em repeat(${data.states}, minmax(0, 1fr)) 1.4em`;
  byId("chain").innerHTML = `<span>sweep</span><span style="grid-column: span ${data.states - 6}">first cell</span>`
    + `<span style="grid-column: span 7; text-align: right">last cell, reward</span>${cells.join("")}`;
}
function set(changes) { Object.assign(state, changes); draw(); }
function play(on) {
  clearInterval(timer);
  timer = on ? setInterval(step, 400) : null;
  set(on && history(state).at(-1)[0] ? { sweeps: 0 } : {});
}
function step() {
  set({ sweeps: state.sweeps + 1 });
  if (timer && byId("sweep").disabled) play(false);
}

for (const name of ["n", "discount"]) byId(name).addEventListener("input", ({ target }) => set({ [name]: target.valueAsNumber }));
byId("sweep").addEventListener("click", step);
byId("play").addEventListener("click", () => play(!timer));
byId("reset").addEventListener("click", () => { play(false); set({ sweeps: 0 }); });
draw();
window.figure = { state, set, history };
