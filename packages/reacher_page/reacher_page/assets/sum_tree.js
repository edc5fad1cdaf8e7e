// A sum tree, the path of a number to its leaf, and how often each leaf is drawn.
const DRAWS = 1000, GAP = 62, RADIUS = 15; // pixels
const state = { priorities: data.priorities, number: data.number, counts: null };
const leaves = state.priorities.length, depth = Math.log2(leaves);

function sums(priorities) { // node 0 is not used; the leaves are the second half
  const tree = [...new Array(leaves).fill(0), ...priorities];
  for (let node = leaves - 1; node > 0; node--) tree[node] = tree[2 * node] + tree[2 * node + 1];
  return tree;
}
function find(tree, number) { // the nodes from the root to the leaf, and the comparison at each
  const path = [1], steps = [];
  while (path.at(-1) < leaves) {
    const left = 2 * path.at(-1), share = tree[left], right = number >= share;
    steps.push(right ? `${short(number)} ≥ ${short(share)}: right, ${short(number)} - ${short(share)} = ${short(number - share)}`
      : `${short(number)} < ${short(share)}: left`);
    if (right) number -= share;
    path.push(left + right);
  }
  return { path, steps, leaf: path.at(-1) - leaves };
}
function draw() {
  const { priorities, counts } = state, tree = sums(priorities), sum = tree[1], most = Math.max(sum - 0.5, 0);
  state.number = Math.min(state.number, most);
  const { path, steps, leaf } = sum ? find(tree, state.number) : { path: [], steps: [], leaf: null };
  Object.assign(byId("number"), { max: most, value: state.number });
  byId("number-now").value = `${short(state.number)} (from 0 to below the sum, ${short(sum)})`;
  byId("play").disabled = !sum;
  byId("said").textContent = sum ? `${short(state.number)} falls into the share of leaf ${leaf}.` : "All priorities are 0: no leaf has a share.";
  priorities.forEach((priority, k) => {
    const share = byId("shares").children[k], label = byId("leaves").children[k];
    share.style.flexGrow = priority;
    share.toggleAttribute("data-lit", k === leaf);
    label.querySelector("input").value = priority;
    label.querySelector(".share").value = sum ? `${(100 * priority / sum).toFixed(1)}%` : "-";
    label.querySelector(".drawn").value = counts ? `${(100 * counts[k] / DRAWS).toFixed(1)}%` : "-";
    label.toggleAttribute("data-lit", k === leaf);
  });
  const [svg, width] = canvas("tree"), x = (node) => {
    const level = Math.floor(Math.log2(node));
    return width * (node - 2 ** level + 0.5) / 2 ** level;
  }, y = (node) => RADIUS + 3 + GAP * Math.floor(Math.log2(node)), lit = (node) => path.includes(node) && "";
  svg.setAttribute("aria-label", `The sum tree. The path of ${short(state.number)}: ${steps.join("; ")}.`);
  for (let node = 2; node < 2 * leaves; node++) add(svg, "line", { x1: x(node >> 1), y1: y(node >> 1), x2: x(node), y2: y(node), "data-lit": lit(node) });
  for (let node = 1; node < 2 * leaves; node++) {
    add(svg, "circle", { cx: x(node), cy: y(node), r: RADIUS, "data-lit": lit(node) });
    add(svg, "text", { x: x(node), y: y(node) }, short(tree[node]));
  }
  steps.forEach((step, k) => {
    const half = 3.2 * step.length; // of the text, pixels
    add(svg, "text", { class: "step", x: Math.max(half, Math.min(width - half, x(path[k]))), y: y(path[k]) + GAP / 2 }, step);
  });
}
function set(changes) { Object.assign(state, changes); draw(); }
function count() {
  const tree = sums(state.priorities), counts = new Array(leaves).fill(0);
  for (let k = 0; k < DRAWS; k++) counts[find(tree, Math.random() * tree[1]).leaf]++;
  set({ counts });
}

byId("shares").innerHTML = state.priorities.map((_, k) => `<span>${k}</span>`).join("");
byId("leaves").innerHTML = state.priorities.map((_, k) => `<label>leaf ${k}<input type="range" min="0" max="9" aria-label="Priority of leaf ${k}">`
  + '<output class="share"></output><output class="drawn"></output></label>').join("");
byId("leaves").addEventListener("input", ({ target }) => {
  const changed = [...byId("leaves").children].indexOf(target.parentElement);
  set({ priorities: state.priorities.map((priority, k) => k === changed ? target.valueAsNumber : priority), counts: null });
});
byId("number").addEventListener("input", ({ target }) => set({ number: target.valueAsNumber }));
byId("play").addEventListener("click", count);
byId("tree").style.height = `${GAP * depth + 2 * RADIUS + 6}px`;
new ResizeObserver(draw).observe(byId("tree"));
draw();
window.figure = { state, set, sums, find };
