// Actors and the critic, as actor.py packs them: { sizes, normalized, mirrors } and the numbers in a row,
// single precision: of each layer weights (outputs x inputs) and bias, and of normalized layers
// LayerNorm's factor and shift. A ReLU lies between any two. A critic takes the action behind the observation; actors end in a tanh. With
// `mirrors`, signs of observation and action in two mirrors, it sees the arm in the mirror in which
// its goal has x >= 0 and z >= 0. Needs COLUMNS, and no page.
const NORMALIZATION_EPSILON = 1e-5;

function network(about) {
  const bytes = Uint8Array.from(atob(about.numbers), (letter) => letter.charCodeAt(0));
  const all = new Float32Array(bytes.buffer), layers = [];
  let begin = 0;
  const take = (count) => all.subarray(begin, begin += count);
  for (let k = 0; k + 1 < about.sizes.length; k++) {
    const inputs = about.sizes[k], outputs = about.sizes[k + 1];
    const layer = { inputs, outputs, weight: take(inputs * outputs), bias: take(outputs) };
    if (about.normalized[k]) Object.assign(layer, { factor: take(outputs), shift: take(outputs) });
    layers.push(layer);
  }
  return { ...about, layers };
}

function forward(network, inputs, action = null) { // an actor's action, or [the critic's value] of one
  if (!network.mirrors) return forwardAsSeen(network, inputs, action);
  const [flipX, flipZ] = network.mirrors, isX = inputs[COLUMNS.GOAL] < 0, isZ = inputs[COLUMNS.GOAL + 2] < 0;
  const mirrored = (values, first) => values.map((value, k) => value * (isX ? flipX[first + k] : 1) * (isZ ? flipZ[first + k] : 1));
  const answer = forwardAsSeen(network, mirrored(inputs, 0), action && mirrored(action, inputs.length));
  return action ? answer : mirrored(answer, inputs.length);
}

function forwardAsSeen(network, inputs, action) {
  let x = action ? Float32Array.of(...inputs, ...action) : inputs;
  network.layers.forEach((layer, k) => {
    const y = new Float32Array(layer.outputs), { weight } = layer;
    if (k) x = x.map((value) => Math.max(0, value));
    for (let o = 0, at = 0; o < layer.outputs; o++) {
      let sum = layer.bias[o];
      for (let i = 0; i < layer.inputs; i++) sum += weight[at++] * x[i];
      y[o] = sum;
    }
    if (layer.factor) {
      let mean = 0, variance = 0;
      for (const value of y) mean += value / y.length;
      for (const value of y) variance += (value - mean) ** 2 / y.length;
      const scale = 1 / Math.sqrt(variance + NORMALIZATION_EPSILON);
      for (let o = 0; o < y.length; o++) y[o] = (y[o] - mean) * scale * layer.factor[o] + layer.shift[o];
    }
    x = y;
  });
  return action ? x : x.map(Math.tanh);
}
