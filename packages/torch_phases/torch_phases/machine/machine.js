// The machine (machine.c as WebAssembly) with the programs of a learner, as torch_phases/program.py exports it.
const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
// The first of these modules (base64) that this browser can run, if any: not without SIMD.
const runnable = (modules) => modules.map(decode).find((code) => globalThis.WebAssembly?.validate(code));
const RARE = { // functions that Math does not have
  logistic: (x) => 1 / (1 + Math.exp(-x)),
  round: (x) => { const r = Math.round(x); return r - x === 0.5 && r % 2 ? r - 1 : r; }, // halves to even numbers
  rem: (x, y) => x % y, and: (x, y) => x & y, or: (x, y) => x | y,
  erf: (x) => { // its series; far out it is 1
    if (Math.abs(x) > 4) return Math.sign(x);
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-12; n++) sum += (term *= -x * x / n) / (2 * n + 1);
    return 2 / Math.sqrt(Math.PI) * sum;
  },
};

class Machine {
  // learner: of torch_phases.export; modules: the machine's variants in base64, the fastest first; random: { uniform(), normal() }
  static async load(learner, modules, random) {
    const code = runnable(modules);
    if (!code) throw new Error("this browser has no WebAssembly SIMD");
    const functions = learner.math.map((name) => random[name]?.bind(random) ?? RARE[name] ?? Math[name]);
    const env = { math: (number, x, y) => functions[number - 64](x, y) };
    const { instance } = await WebAssembly.instantiate(code, { env });
    return new Machine(learner, instance.exports, random);
  }

  constructor(learner, { memory, run }, random) {
    const codes = Object.entries(learner.programs).map(([name, { words }]) => [name, new Int32Array(decode(words).buffer)]);
    const size = codes.reduce((sum, [, words]) => sum + words.length, learner.top), start = Math.min(...learner.first.map(([place]) => place));
    if (memory.buffer.byteLength > 4 * start) throw new Error("the machine's own memory is larger than its programs know");
    memory.grow(Math.max(0, Math.ceil((4 * size - memory.buffer.byteLength) / 65536)));
    Object.assign(this, { learner, run, floats: new Float32Array(memory.buffer), programs: {} });
    let end = learner.top;
    for (const [name, words] of codes) {
      new Int32Array(memory.buffer).set(words, end);
      const { inputs, outputs, reads } = learner.programs[name], room = (one) => this.room(one);
      this.programs[name] = { begin: 4 * end, end: 4 * (end += words.length), reads: reads.map(room), outputs: outputs.map(room),
        inputs: inputs.map((one) => ({ ...one, numbers: room(one) })) };
    }
    for (const [place, size, kind, value] of learner.first) {
      const room = this.floats.subarray(place, place + size);
      if (kind === "uniform") for (let k = 0; k < size; k++) room[k] = value * (2 * random.uniform() - 1);
      else if (kind === "copy") room.set(this.floats.subarray(value, value + size));
      else { const numbers = new Float32Array(decode(value).buffer); room.forEach((_, k) => { room[k] = numbers[k % numbers.length]; }); }
    }
    this.setRate(1);
  }

  room({ place, shape }) { return this.floats.subarray(place, place + shape.reduce((a, b) => a * b, 1)); }
  call(name) { // its arguments are in programs[name].inputs, its results in .outputs
    const { begin, end, outputs } = this.programs[name];
    this.run(begin, end);
    return outputs;
  }
  setRate(factor) { for (const [place, rate] of this.learner.rates) this.floats[place] = factor * rate; }
  taken(name) { return this.programs[name].reads.map((room) => room.slice()); } // what a method reads of the learner
  put(name, taken) { this.programs[name].reads.forEach((room, k) => room.set(taken[k])); }
}
