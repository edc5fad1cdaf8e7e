"use strict";
// Draws recorded arms. No library, no network: positions are in the page, in centimetres.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const canvas = byId("view"), strip = byId("strip");
const look = data.look, arms = data.places.length, last = data.decisions;
const PARTS = { elbow: 0, hand: 1, goal: 2 };

function numbers(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

const actors = data.actors.map((actor) => {
  const rewards = numbers(actor.rewards, Uint8Array); // in steps of 0.01, decision by decision
  const sums = new Float64Array((last + 1) * arms);
  for (let k = 0; k < last * arms; k++) sums[k + arms] = sums[k] + rewards[k];
  return { ...actor, places: numbers(actor.positions, Int16Array), rewards, sums };
});

// Recorded place of a part, m, in Unity's axes, between two decisions on a straight line.
function place(actor, time, arm, part) {
  const first = Math.min(Math.floor(time), last), next = Math.min(first + 1, last);
  const share = time - first, source = actors[actor].places;
  const a = ((first * arms + arm) * 3 + PARTS[part]) * 3, b = ((next * arms + arm) * 3 + PARTS[part]) * 3;
  return [0, 1, 2].map((k) => (source[a + k] + (next === first ? 0 : share * (source[b + k] - source[a + k]))) / 100);
}
const length = (v) => Math.hypot(v[0], v[1], v[2]);
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const plus = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const upright = (v, at) => [v[0] + at[0], v[2] + at[1], v[1] + at[2]]; // z up, on the arm's place

const isTouched = (actor, time, arm) =>
  length(minus(place(actor, time, arm, "hand"), place(actor, time, arm, "goal"))) <= look.handRadius + data.goalSize / 2;

// ------------------------------------------------------------------------------------- the state
const state = { time: 0, playing: false, speed: 1, arm: -1, azimuth: look.azimuth, elevation: look.elevation,
                zoom: 1, shift: [0, 0, 0] };
const dark = matchMedia("(prefers-color-scheme: dark)");
const shades = () => dark.matches ? look.dark : look.light;
const shown = () => state.arm < 0 ? [...Array(arms).keys()] : [state.arm];
let fitted = null; // distance and target for which everything is in the picture
let stale = true; // whether something changed since the last picture
const changed = () => { stale = true; };

function viewports() { // one for each actor: side by side, or one above the other
  const { width, height } = canvas;
  if (actors.length === 1) return [[0, 0, width, height]];
  return width >= height * 0.9
    ? actors.map((_, k) => [Math.round(k * width / actors.length), 0, Math.floor(width / actors.length), height])
    : actors.map((_, k) => [0, Math.round(k * height / actors.length), width, Math.floor(height / actors.length)]);
}

function axes() {
  const turn = state.azimuth * Math.PI / 180, tilt = state.elevation * Math.PI / 180;
  const forward = [Math.cos(turn) * Math.cos(tilt), Math.sin(turn) * Math.cos(tilt), -Math.sin(tilt)];
  const right = [Math.sin(turn), -Math.cos(turn), 0];
  return { forward, right, up: cross(right, forward) };
}
// Half of what a picture spans, as a share of the distance: the longer side has the whole angle.
const slopes = (width, height) => Math.tan(look.fieldOfView * Math.PI / 360) * Math.min(1, height / width);

function fit() { // as near as it can with all arms in the picture
  const [, , width, height] = viewports()[0], { forward, right, up } = axes(), slope = slopes(width, height);
  const points = [], one = state.arm >= 0 || arms === 1;
  const caption = Math.max(...[...byId("captions").children].map((each) => each.offsetHeight)) * canvas.width / canvas.clientWidth;
  const free = 1 - Math.min(caption / height, 0.5); // share of the height that no caption covers
  const [around, below, above] = one ? data.framedOne : data.framed;
  for (const arm of shown()) for (let k = 0; k < 12; k++) for (const z of [below, above])
    points.push(plus(at(arm), [around * Math.cos(k * Math.PI / 6), around * Math.sin(k * Math.PI / 6), z]));
  let target = [0, 1, 2].map((k) => (Math.min(...points.map((p) => p[k])) + Math.max(...points.map((p) => p[k]))) / 2);
  let distance = 100;
  for (let turn = 0; turn < 12; turn++) {
    const seen = points.map((p) => { const a = minus(p, target); return [dot(a, right), dot(a, up), dot(a, forward)]; });
    distance = look.margin * Math.max(...seen.map(([x, y, z]) =>
      Math.max(Math.abs(x) * height / width, Math.abs(y) / free) / slope - z));
    for (const [k, axis] of [[0, right], [1, up]]) {
      const shares = seen.map((s) => s[k] / (distance + s[2]));
      target = plus(target, axis, (Math.min(...shares) + Math.max(...shares)) / 2 * distance);
    }
  }
  fitted = { target: plus(target, up, (1 - free) * slope * distance), distance };
}
const at = (arm) => state.arm >= 0 ? [0, 0, 0] : data.places[arm]; // one arm alone stands in the middle

function camera() {
  if (!fitted) { placeCaptions(); fit(); }
  const distance = fitted.distance * state.zoom, { forward, right, up } = axes();
  const target = plus(fitted.target, state.shift);
  return { distance, target, forward, right, up, eye: plus(target, forward, -distance) };
}

function project(point, view, viewport) { // to pixels of the canvas, from its top left, and depth
  const away = minus(point, view.eye), depth = dot(away, view.forward);
  const focal = viewport[3] / 2 / slopes(viewport[2], viewport[3]);
  return [viewport[0] + viewport[2] / 2 + focal * dot(away, view.right) / depth,
          viewport[1] + viewport[3] / 2 - focal * dot(away, view.up) / depth, depth, focal / depth];
}

// What there is to draw: balls [centre, radius, colour, opacity, glow], rods [start, end, radius, colour].
function things(actor, time) {
  const balls = [], rods = [], goals = [], rings = [], color = shades();
  for (const arm of shown()) {
    const base = at(arm);
    const [elbow, hand, goal] = ["elbow", "hand", "goal"].map((part) => upright(place(actor, time, arm, part), base));
    rods.push([[base[0], base[1], look.floor], base, look.postRadius, color.post]);
    rods.push([base, elbow, look.armRadius, color.arm], [elbow, hand, look.armRadius, color.arm]);
    balls.push([base, look.baseRadius, color.base, 1, 0], [elbow, look.elbowRadius, color.elbow, 1, 0],
               [hand, look.handRadius, color.hand, 1, 0]);
    if (isTouched(actor, time, arm)) {
      goals.push([goal, data.goalSize / 2, color.touched, look.touchedOpacity, color.glow]);
      rings.push([goal, data.goalSize / 2 * look.ringOutside, color.ring]);
    } else goals.push([goal, data.goalSize / 2, color.goal, look.goalOpacity, 0]);
  }
  return { balls, rods, goals, rings };
}

// ------------------------------------------------------------------------------------- by WebGL 2
const VERTEX = `#version 300 es
in vec3 corner, normal; in vec3 start, end; in float radius; in vec4 color; in float glow;
uniform mat4 toClip; uniform int kind; uniform bool flat_; uniform vec3 sun; uniform float ground, thick;
out vec3 vNormal, vPlace; out vec4 vColor; out float vGlow;
void main() {
  vec3 place, n = normal;
  if (kind == 0) place = start + radius * corner;
  else if (kind == 1) {
    vec3 along = end - start; float size = length(along);
    vec3 z = size > 1e-6 ? along / size : vec3(0, 0, 1);
    vec3 x = normalize(cross(abs(z.z) < 0.9 ? vec3(0, 0, 1) : vec3(1, 0, 0), z)), y = cross(z, x);
    place = start + along * corner.z + radius * (x * corner.x + y * corner.y);
    n = x * normal.x + y * normal.y;
  } else place = start + radius * vec3(corner.xy, 0) + thick * normal;
  if (flat_) place = vec3(place.xy - sun.xy * (place.z - ground) / sun.z, ground);
  vNormal = n; vPlace = place; vColor = color; vGlow = glow;
  gl_Position = toClip * vec4(place, 1);
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec3 vNormal, vPlace; in vec4 vColor; in float vGlow;
uniform vec3 sun, eye; uniform bool flat_; uniform vec4 shadow; uniform float ambient, front, sunny;
out vec4 result;
void main() {
  if (flat_) { result = shadow; return; }
  vec3 n = normalize(vNormal), look = normalize(eye - vPlace);
  float lit = ambient + front * max(dot(n, look), 0.0) + sunny * max(dot(n, sun), 0.0);
  float shine = pow(max(dot(n, normalize(sun + look)), 0.0), 40.0) * 0.35;
  float rim = vColor.a < 1.0 ? 0.35 * pow(1.0 - max(dot(n, look), 0.0), 2.0) : 0.0;
  result = vec4(vColor.rgb * min(lit + vGlow, 1.25) + shine, min(vColor.a + rim, 1.0));
  result.rgb *= result.a;
}`;
const FLOOR_VERTEX = `#version 300 es
in vec2 corner; uniform mat4 toClip; uniform vec3 middle; uniform float size, ground; out vec2 spot;
void main() { spot = middle.xy + size * corner; gl_Position = toClip * vec4(spot, ground, 1); }`;
const FLOOR_FRAGMENT = `#version 300 es
precision highp float;
in vec2 spot; uniform vec3 first, second, sky, middle; uniform float square, far; out vec4 result;
void main() {
  vec2 s = spot / square, w = max(fwidth(s), 1e-4);
  vec2 wave = 2.0 * (abs(fract((s - 0.5 * w) / 2.0) - 0.5) - abs(fract((s + 0.5 * w) / 2.0) - 0.5)) / w;
  float other = 0.5 - 0.5 * clamp(wave.x, -1.0, 1.0) * clamp(wave.y, -1.0, 1.0);
  other = mix(other, 0.5, smoothstep(0.3, 1.0, max(w.x, w.y)));
  result = vec4(mix(mix(first, second, other), sky, smoothstep(0.25, 1.0, length(spot - middle.xy) / far)), 1);
}`;

function ball() {
  const corners = [], faces = [], rows = 20, columns = 32;
  for (let i = 0; i <= rows; i++) for (let j = 0; j <= columns; j++) {
    const a = Math.PI * i / rows, b = 2 * Math.PI * j / columns;
    corners.push(Math.sin(a) * Math.cos(b), Math.sin(a) * Math.sin(b), Math.cos(a));
    if (i < rows && j < columns) {
      const k = i * (columns + 1) + j, l = k + columns + 1;
      faces.push(k, l, k + 1, k + 1, l, l + 1);
    }
  }
  return { corners, normals: corners, faces };
}
function rod() {
  const corners = [], normals = [], faces = [], columns = 24;
  for (let j = 0; j <= columns; j++) {
    const b = 2 * Math.PI * j / columns, x = Math.cos(b), y = Math.sin(b);
    corners.push(x, y, 0, x, y, 1); normals.push(x, y, 0, x, y, 0);
    if (j < columns) faces.push(2 * j, 2 * j + 2, 2 * j + 1, 2 * j + 1, 2 * j + 2, 2 * j + 3);
  }
  return { corners, normals, faces };
}
function ringForm() {
  const corners = [], normals = [], faces = [], around = 64, across = 10;
  for (let i = 0; i <= around; i++) for (let j = 0; j <= across; j++) {
    const a = 2 * Math.PI * i / around, b = 2 * Math.PI * j / across;
    corners.push(Math.cos(a), Math.sin(a), 0);
    normals.push(Math.cos(a) * Math.cos(b), Math.sin(a) * Math.cos(b), Math.sin(b));
    if (i < around && j < across) {
      const k = i * (across + 1) + j, l = k + across + 1;
      faces.push(k, l, k + 1, k + 1, l, l + 1);
    }
  }
  return { corners, normals, faces };
}

function webgl() {
  const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, stencil: true });
  if (!gl) return null;
  const program = (vertex, fragment) => {
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text); gl.compileShader(shader); gl.attachShader(made, shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) throw new Error(gl.getShaderInfoLog(shader));
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(gl.getProgramInfoLog(made));
    const uniforms = {};
    for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
      const { name } = gl.getActiveUniform(made, k);
      uniforms[name] = gl.getUniformLocation(made, name);
    }
    return { made, uniforms };
  };
  let solid, floor, forms, plane, queue;
  const buffer = (kind, values) => {
    const made = gl.createBuffer();
    gl.bindBuffer(kind, made); gl.bufferData(kind, values, gl.STATIC_DRAW);
    return made;
  };
  const SIZES = [["start", 3], ["end", 3], ["radius", 1], ["color", 4], ["glow", 1]], ROW = 12;
  function prepare() {
    solid = program(VERTEX, FRAGMENT); floor = program(FLOOR_VERTEX, FLOOR_FRAGMENT);
    queue = gl.createBuffer();
    forms = [ball(), rod(), ringForm()].map((form) => {
      const whole = gl.createVertexArray();
      gl.bindVertexArray(whole);
      for (const [name, values] of [["corner", form.corners], ["normal", form.normals]]) {
        const where = gl.getAttribLocation(solid.made, name);
        buffer(gl.ARRAY_BUFFER, new Float32Array(values));
        gl.enableVertexAttribArray(where); gl.vertexAttribPointer(where, 3, gl.FLOAT, false, 0, 0);
      }
      buffer(gl.ELEMENT_ARRAY_BUFFER, new Uint16Array(form.faces));
      gl.bindBuffer(gl.ARRAY_BUFFER, queue);
      let offset = 0;
      for (const [name, size] of SIZES) {
        const where = gl.getAttribLocation(solid.made, name);
        gl.enableVertexAttribArray(where);
        gl.vertexAttribPointer(where, size, gl.FLOAT, false, 4 * ROW, 4 * offset);
        gl.vertexAttribDivisor(where, 1);
        offset += size;
      }
      return { whole, count: form.faces.length };
    });
    plane = gl.createVertexArray();
    gl.bindVertexArray(plane);
    buffer(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]));
    const where = gl.getAttribLocation(floor.made, "corner");
    gl.enableVertexAttribArray(where); gl.vertexAttribPointer(where, 2, gl.FLOAT, false, 0, 0);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }
  prepare();
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => { prepare(); changed(); });

  const row = (start, end, radius, color, opacity, glow) => [...start, ...end, radius, ...color, opacity, glow];
  function draw(kind, rows) {
    if (!rows.length) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, queue);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(rows.flat()), gl.STREAM_DRAW);
    gl.uniform1i(solid.uniforms.kind, kind);
    gl.bindVertexArray(forms[kind].whole);
    gl.drawElementsInstanced(gl.TRIANGLES, forms[kind].count, gl.UNSIGNED_SHORT, 0, rows.length);
  }
  function clip(view, width, height) { // column by column
    const near = 0.02 * view.distance, far = 40 * view.distance + 400;
    const { right: r, up: u, forward: f, eye: e } = view, y = 1 / slopes(width, height), x = y * height / width;
    const a = (far + near) / (far - near), b = -2 * far * near / (far - near);
    return new Float32Array([
      x * r[0], y * u[0], a * f[0], f[0], x * r[1], y * u[1], a * f[1], f[1], x * r[2], y * u[2], a * f[2], f[2],
      -x * dot(r, e), -y * dot(u, e), -a * dot(f, e) + b, -dot(f, e)]);
  }
  const sunFrom = look.sun.map((value) => value / length(look.sun));

  return function picture() {
    const color = shades(), view = camera();
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(...color.sky, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    viewports().forEach(([left, top, width, height], actor) => {
      gl.viewport(left, canvas.height - top - height, width, height);
      gl.scissor(left, canvas.height - top - height, width, height);
      gl.enable(gl.SCISSOR_TEST);
      const matrix = clip(view, width, height), { balls, rods, goals, rings } = things(actor, state.time);
      gl.useProgram(floor.made);
      gl.uniformMatrix4fv(floor.uniforms.toClip, false, matrix);
      gl.uniform3fv(floor.uniforms.middle, view.target);
      gl.uniform1f(floor.uniforms.size, 12 * view.distance);
      gl.uniform1f(floor.uniforms.far, 3 * view.distance);
      gl.uniform1f(floor.uniforms.ground, look.floor);
      gl.uniform1f(floor.uniforms.square, look.square);
      gl.uniform3fv(floor.uniforms.first, color.floor[0]); gl.uniform3fv(floor.uniforms.second, color.floor[1]);
      gl.uniform3fv(floor.uniforms.sky, color.sky);
      gl.disable(gl.CULL_FACE); gl.disable(gl.BLEND); gl.disable(gl.DEPTH_TEST); // all else is above the floor
      gl.bindVertexArray(plane); gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);

      const ballRows = balls.map(([c, r, k, o, g]) => row(c, c, r, k, o, g));
      const rodRows = rods.map(([a, b, r, k]) => row(a, b, r, k, 1, 0));
      const away = (goal) => dot(minus(goal[0], view.eye), view.forward);
      const goalRows = goals.sort((a, b) => away(b) - away(a)).map(([c, r, k, o, g]) => row(c, c, r, k, o, g));
      const ringRows = rings.map(([c, r, k]) => row(c, c, r, k, 1, 0.6));
      gl.useProgram(solid.made);
      gl.uniformMatrix4fv(solid.uniforms.toClip, false, matrix);
      gl.uniform3fv(solid.uniforms.sun, sunFrom); gl.uniform3fv(solid.uniforms.eye, view.eye);
      gl.uniform1f(solid.uniforms.ground, look.floor); gl.uniform1f(solid.uniforms.thick, look.ringWidth);
      gl.uniform1f(solid.uniforms.ambient, color.ambient); gl.uniform1f(solid.uniforms.front, color.headlight);
      gl.uniform1f(solid.uniforms.sunny, color.sun);
      gl.uniform4fv(solid.uniforms.shadow, [0, 0, 0, color.shadow]);
      // Shadows: every thing pressed flat; the stencil lets each pixel darken once.
      gl.uniform1i(solid.uniforms.flat_, 1);
      gl.enable(gl.BLEND); gl.enable(gl.STENCIL_TEST);
      gl.stencilFunc(gl.EQUAL, 0, 255); gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      draw(0, ballRows); draw(1, rodRows); draw(0, goalRows); draw(2, ringRows);
      gl.disable(gl.STENCIL_TEST); gl.disable(gl.BLEND); gl.enable(gl.DEPTH_TEST);
      gl.uniform1i(solid.uniforms.flat_, 0);
      draw(1, rodRows);
      gl.enable(gl.CULL_FACE);
      draw(0, ballRows); draw(2, ringRows);
      gl.enable(gl.BLEND); gl.depthMask(false);
      draw(0, goalRows);
      gl.depthMask(true);
    });
  };
}

// ----------------------------------------------------------------- without WebGL: painted back to front
function painted() {
  const pen = canvas.getContext("2d");
  const css = (c, opacity = 1, light = 1) => `rgb(${c.map((v) => Math.round(255 * Math.min(v * light, 1))).join(" ")} / ${opacity})`;
  return function picture() {
    const color = shades(), view = camera();
    pen.fillStyle = css(color.floor[0]); pen.fillRect(0, 0, canvas.width, canvas.height);
    viewports().forEach((viewport, actor) => {
      pen.save(); pen.beginPath(); pen.rect(...viewport); pen.clip();
      const { balls, rods, goals, rings } = things(actor, state.time), jobs = [];
      const disk = ([place_, radius, shade, opacity, glow]) => {
        const [x, y, depth, scale] = project(place_, view, viewport), r = radius * scale;
        jobs.push([depth, () => {
          const paint = pen.createRadialGradient(x - r / 3, y - r / 3, r / 8, x, y, r);
          paint.addColorStop(0, css(shade, opacity, 1.1 + glow)); paint.addColorStop(1, css(shade, opacity, 0.62 + glow));
          pen.fillStyle = paint; pen.beginPath(); pen.arc(x, y, r, 0, 7); pen.fill();
        }]);
      };
      for (const [a, b, radius, shade] of rods) {
        const p = project(a, view, viewport), q = project(b, view, viewport);
        jobs.push([(p[2] + q[2]) / 2, () => {
          pen.strokeStyle = css(shade, 1, 0.9); pen.lineCap = "round";
          pen.lineWidth = Math.max(radius * (p[3] + q[3]), 1);
          pen.beginPath(); pen.moveTo(p[0], p[1]); pen.lineTo(q[0], q[1]); pen.stroke();
        }]);
      }
      balls.forEach(disk); goals.forEach(disk);
      for (const [place_, radius, shade] of rings) {
        const [x, y, depth, scale] = project(place_, view, viewport);
        jobs.push([depth - 0.01, () => {
          pen.strokeStyle = css(shade); pen.lineWidth = Math.max(2 * look.ringWidth * scale, 1.5);
          pen.beginPath();
          pen.ellipse(x, y, radius * scale, Math.abs(radius * scale * view.forward[2]), 0, 0, 7); pen.stroke();
        }]);
      }
      jobs.sort((a, b) => b[0] - a[0]).forEach(([, job]) => job());
      pen.restore();
    });
  };
}

// -------------------------------------------------------------------------------- what is around it
const element = (kind, text = "", attributes = {}) => {
  const made = document.createElement(kind);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
const cells = []; // per arm and actor: score, reward, touch
function build() {
  byId("what").textContent = data.what;
  const options = (select, pairs) => pairs.forEach(([value, text]) => select.append(element("option", text, { value })));
  options(byId("speed"), [0.1, 0.25, 0.5, 1, 2, 4, 8].map((value) => [value, `${value} x`]));
  byId("speed").value = "1";
  options(byId("arm"), [[-1, "all"], ...[...Array(arms).keys()].map((arm) => [arm, String(arm + 1)])]);
  byId("time").max = last;
  for (const actor of actors) {
    const caption = element("p");
    caption.append(element("strong", actor.title), element("span", actor.facts.join(" · ")));
    byId("captions").append(caption);
  }
  const table = element("table"), head = element("thead"), body = element("tbody");
  table.append(element("caption", "Sum of rewards so far, reward of the last decision (at most 0.04), and touch. A click or Enter chooses an arm."));
  const names = element("tr"), columns = element("tr");
  names.append(element("td")); columns.append(element("th", "arm", { scope: "col" }));
  for (const actor of actors) {
    names.append(element("th", actor.title, { colspan: 4, scope: "colgroup" }));
    for (const name of ["score", "at the end", "reward", "touch"]) columns.append(element("th", name, { scope: "col", class: name }));
  }
  if (actors.length > 1) head.append(names);
  head.append(columns); table.append(head);
  for (let arm = -1; arm < arms; arm++) {
    const line = element("tr", "", { tabindex: 0, "aria-selected": arm === state.arm });
    line.append(element("th", arm < 0 ? "mean" : String(arm + 1), { scope: "row" }));
    cells.push(actors.map(() => ["score", "end", "reward", "touch"].map((name) => {
      const cell = element("td", "", name === "touch" ? { class: "touch" } : {});
      line.append(cell);
      return cell;
    })));
    line.addEventListener("click", () => choose(arm));
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(arm); });
    body.append(line);
  }
  table.append(body); byId("scores").append(table);
}

function tell() {
  const now = Math.floor(state.time), some = [...Array(arms).keys()];
  byId("time").value = now;
  byId("time").setAttribute("aria-valuetext", `decision ${now} of ${last}`);
  byId("clock").textContent = `${(state.time * look.decisionSeconds).toFixed(2)} s, decision ${now} of ${last}`;
  byId("play").textContent = state.playing ? "❚❚" : "▶\ufe0e";
  byId("play").setAttribute("aria-label", state.playing ? "Pause" : "Play");
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  actors.forEach((actor, k) => {
    const score = some.map((arm) => actor.sums[now * arms + arm] / 100), end = some.map((arm) => actor.sums[last * arms + arm] / 100);
    const reward = some.map((arm) => now ? actor.rewards[(now - 1) * arms + arm] / 100 : 0);
    const touch = some.map((arm) => isTouched(k, now, arm));
    const write = (cell, text) => { if (cell.textContent !== text) cell.textContent = text; };
    for (let arm = -1; arm < arms; arm++) {
      const [a, b, c, d] = cells[arm + 1][k];
      write(a, (arm < 0 ? mean(score) : score[arm]).toFixed(2)); write(b, (arm < 0 ? mean(end) : end[arm]).toFixed(2));
      write(c, (arm < 0 ? mean(reward) : reward[arm]).toFixed(arm < 0 ? 3 : 2));
      write(d, arm < 0 ? `${touch.filter(Boolean).length} of ${arms}` : touch[arm] ? "◉" : "–");
    }
  });
}
function placeCaptions() {
  const scale = canvas.width / canvas.clientWidth || 1;
  viewports().forEach(([left, top, width], k) => {
    const { style } = byId("captions").children[k];
    style.left = `${left / scale}px`; style.top = `${top / scale}px`; style.maxWidth = `${width / scale}px`;
  });
}

function paintStrip() { // how many arms are paid, along the time line: a band for each actor
  const pen = strip.getContext("2d"), ratio = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  strip.width = Math.max(strip.clientWidth * ratio, 1); strip.height = Math.max(strip.clientHeight * ratio, 1);
  pen.fillStyle = style.getPropertyValue("--touched");
  actors.forEach((actor, k) => {
    const high = strip.height / actors.length - 1;
    for (let x = 0; x < strip.width; x++) {
      const decision = Math.min(Math.floor(x / strip.width * last), last - 1);
      let paid = 0;
      for (const arm of shown()) paid += actor.rewards[decision * arms + arm];
      const share = paid / shown().length / 4;
      pen.fillRect(x, (k + 1) * strip.height / actors.length - high * share, 1, high * share);
    }
  });
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
function show(time) { state.time = clamp(time, 0, last); changed(); }
function play(on) {
  state.playing = on;
  if (on && state.time >= last) state.time = 0;
  changed();
}
function choose(arm) {
  state.arm = arm; state.zoom = 1; state.shift = [0, 0, 0]; fitted = null;
  state.elevation = arm < 0 && arms > 1 ? look.elevation : look.oneArmElevation;
  byId("arm").value = String(arm);
  document.querySelectorAll("#scores tbody tr").forEach((line, k) => line.setAttribute("aria-selected", String(k - 1 === arm)));
  paintStrip(); changed();
}
function reset() { state.azimuth = look.azimuth; choose(state.arm); }
function orbit(x, y) {
  state.azimuth -= x; state.elevation = clamp(state.elevation + y, look.lowestElevation, 89); changed();
}
function zoom(factor) { state.zoom = clamp(state.zoom * factor, look.nearest, look.farthest); changed(); }
function shift(x, y) { // pixels
  const view = camera(), [, , width, height] = viewports()[0], metres = 2 * slopes(width, height) * view.distance / height * (canvas.width / canvas.clientWidth || 1);
  state.shift = plus(plus(state.shift, view.right, -x * metres), view.up, y * metres); changed();
}
function faster(step) {
  const select = byId("speed");
  select.selectedIndex = clamp(select.selectedIndex + step, 0, select.options.length - 1);
  state.speed = Number(select.value);
}

function listen() {
  const fingers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY], x = now[0] - before[0], y = now[1] - before[1];
    if (fingers.size > 1) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, spot]) => spot);
      const apart = (spot) => Math.hypot(spot[0] - other[0], spot[1] - other[1]) || 1;
      zoom(apart(before) / apart(now)); shift(x / 2, y / 2);
    } else if (event.buttons & 6 || event.shiftKey) shift(x, y);
    else orbit(x * look.turnSpeed, y * look.turnSpeed);
    fingers.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(event.deltaY * look.wheelSpeed)); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: [-5, 0], ArrowRight: [5, 0], ArrowUp: [0, 4], ArrowDown: [0, -4] }[event.key];
    if (turn) { orbit(...turn); event.preventDefault(); }
  });
  const keys = {
    " ": () => play(!state.playing), ",": () => { play(false); show(Math.ceil(state.time) - 1); },
    ".": () => { play(false); show(Math.floor(state.time) + 1); }, Home: () => show(0), End: () => show(last),
    "<": () => faster(-1), ">": () => faster(1), "+": () => zoom(1 / 1.15), "=": () => zoom(1 / 1.15), "-": () => zoom(1.15),
    0: reset, a: () => choose(-1), n: () => choose((state.arm + 2) % (arms + 1) - 1), p: () => choose((state.arm + arms + 1) % (arms + 1) - 1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    if (event.target.matches("select") || event.key === " " && event.target.matches("button, summary")) return;
    event.preventDefault(); keys[event.key]();
  });
  byId("play").addEventListener("click", () => play(!state.playing));
  byId("back").addEventListener("click", keys[","]); byId("on").addEventListener("click", keys["."]);
  byId("reset").addEventListener("click", reset);
  byId("time").addEventListener("input", (event) => show(Number(event.target.value)));
  byId("speed").addEventListener("change", (event) => { state.speed = Number(event.target.value); });
  byId("arm").addEventListener("change", (event) => choose(Number(event.target.value)));
  dark.addEventListener("change", () => { paintStrip(); changed(); });
  new ResizeObserver(resize).observe(canvas);
}
function resize() {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.max(Math.round(canvas.clientWidth * ratio), 1);
  canvas.height = Math.max(Math.round(canvas.clientHeight * ratio), 1);
  fitted = null; paintStrip(); changed();
}

document.body.classList.remove("waiting");
document.querySelector("main").hidden = false;
build();
let picture = null;
try { picture = data.webgl === false ? null : webgl(); } catch (error) { console.warn(String(error)); }
if (!picture) {
  const fresh = canvas.getContext("2d");
  byId("trouble").hidden = false;
  byId("trouble").textContent = fresh ? "WebGL 2 is missing here, so the arms are painted more simply, without shadows."
                                      : "This browser can draw neither by WebGL 2 nor on a canvas.";
  picture = fresh ? painted() : () => {};
}
listen(); resize();
show(Math.min(data.start, last));
let before = performance.now();
function tick(now) {
  const passed = Math.min(now - before, 250) / 1000;
  before = now;
  if (state.playing) {
    show(state.time + passed / look.decisionSeconds * state.speed);
    if (state.time >= last) state.playing = false;
  }
  if (stale) { stale = false; picture(); tell(); }
  requestAnimationFrame(tick);
}
requestAnimationFrame(tick);
if (!matchMedia("(prefers-reduced-motion: reduce)").matches && data.autoplay) play(true);

// For whoever wants to look at the numbers, in the browser's console.
window.arms = {
  data, state, play, choose, orbit, zoom, place, isTouched,
  show(time) { play(false); show(time); stale = false; picture(); tell(); },
  pixel(actor, arm, part) {
    const spot = part === "base" ? at(arm) : upright(place(actor, state.time, arm, part), at(arm));
    return project(spot, camera(), viewports()[actor]).slice(0, 2);
  },
  pixelOf: (spot) => project(spot, camera(), viewports()[0]).slice(0, 2),
};
})();
