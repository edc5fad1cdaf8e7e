// Draws arms on a canvas of two dimensions, far things first: 60 pictures a second without a
// graphics card. Space is right-handed with z up: x, z, y of the physics, moved to the arm's place.
// Needs physics.js, and no page: the canvas may be an OffscreenCanvas in a worker.
const FLOOR = -14.5, SQUARE = 6.5, SUN = [-40, -60, 90], FIELD_OF_VIEW = 22, MARGIN = 1.04; // m, degrees
const RADIUS = { base: 1, limb: 0.5, elbow: 0.75, post: 0.14, ring: 1.16 }; // m, but the ring's: of the goal
const FRAMED = { // around the base, below, above, m; degrees
  one: { around: 11.5, below: -14.5, above: 7, azimuth: 90, elevation: 22 },
  many: { around: 10.5, below: -9, above: 3, azimuth: 90, elevation: 40 },
};
const DARK = {
  sky: [16, 21, 32], floor: [30, 37, 52], square: [37, 45, 63], shadow: [5, 7, 12, 0.5], post: [98, 110, 138],
  base: [128, 139, 165], limb: [232, 235, 242], second: [233, 168, 84], hand: [64, 164, 255], goal: [214, 116, 178],
  touched: [52, 224, 120], ring: [255, 255, 255], torque: [255, 186, 73], ink: [170, 180, 200],
};
const LIGHT = {
  sky: [231, 237, 245], floor: [218, 225, 235], square: [226, 232, 241], shadow: [40, 60, 90, 0.2], post: [140, 151, 170],
  base: [74, 84, 104], limb: [126, 139, 162], second: [205, 128, 38], hand: [18, 112, 208], goal: [200, 92, 160],
  touched: [22, 178, 104], ring: [6, 78, 46], torque: [214, 112, 0], ink: [82, 94, 116],
};
const upright = ([x, y, z], place) => [x + place[0], z + place[1], y + place[2]];
const paint = (color, opacity = 1, light = 1) =>
  `rgba(${color.slice(0, 3).map((value) => Math.round(clamp(value * light, 0, 255))).join()},${opacity})`;

class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.ground = new OffscreenCanvas(1, 1); // the floor, kept while the camera rests
    this.camera = { ...FRAMED.many, distance: 100, target: [0, 0, 0] };
    this.flight = null;
    this.sharpest = 2; // pixels of the canvas for one of the page, at most
  }

  resize(width, height, sharpness) { // pixels of the page, the canvas's for one of them; true where the size is another one
    const ratio = Math.min(sharpness, this.sharpest), isOther = this.width !== width || this.height !== height;
    if (!isOther && this.ratio === ratio) return false;
    Object.assign(this, { width, height, ratio, kept: null });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    return isOther;
  }

  axes({ azimuth, elevation } = this.camera) {
    const turn = azimuth * Math.PI / 180, tilt = elevation * Math.PI / 180;
    const forward = [Math.cos(turn) * Math.cos(tilt), Math.sin(turn) * Math.cos(tilt), -Math.sin(tilt)];
    const right = [Math.sin(turn), -Math.cos(turn), 0];
    return { forward, right, up: cross(right, forward) };
  }

  get focal() { return Math.max(this.width, this.height) / 2 / Math.tan(FIELD_OF_VIEW * Math.PI / 360); }

  // The nearest camera that has these places in the picture, below the words at its upper edge and above those at its lower one.
  framing(places, { around, below, above, azimuth, elevation }) {
    const { forward, right, up } = this.axes({ azimuth, elevation }), points = [];
    for (const place of places) for (let k = 0; k < 12; k++) for (const z of [below, above]) {
      points.push(add(place, [around * Math.cos(k * Math.PI / 6), around * Math.sin(k * Math.PI / 6), z]));
    }
    let target = places[0], distance = 100;
    for (let turn = 0; turn < 12; turn++) {
      const seen = points.map((p) => { const a = sub(p, target); return [dot(a, right), dot(a, up), dot(a, forward)]; });
      distance = MARGIN * Math.max(...seen.map(([x, y, z]) =>
        Math.max(Math.abs(x) / this.width, Math.abs(y) / Math.max(this.height - 90, 100)) * 2 * this.focal - z));
      [right, up].forEach((axis, k) => {
        const shares = seen.map((s) => s[k] / (distance + s[2]));
        target = add(target, axis, (Math.min(...shares) + Math.max(...shares)) / 2 * distance);
      });
    }
    return { azimuth, elevation, distance, target };
  }

  // Places of arms in rows, as many in each as make them look largest in a picture of this shape.
  spread(count, apart, multiple = 1) {
    const found = [...Array(count).keys()].map((k) => k + 1).filter((columns) => (columns % multiple === 0 || count === 1) && columns * Math.ceil(count / columns) - count < 2).map((columns) => {
      const rows = Math.ceil(count / columns), middle = (columns - 1) / 2;
      const places = [...Array(count).keys()].map((k) => [(k % columns - middle) * apart, ((rows - 1) / 2 - Math.floor(k / columns)) * 1.15 * apart, 0]);
      return { places, far: this.framing(places, FRAMED.many).distance };
    });
    return found.reduce((best, other) => (other.far < best.far ? other : best)).places;
  }

  fly(camera, seconds) {
    this.flight = seconds > 0 ? { from: this.camera, to: camera, seconds, passed: 0 } : null;
    if (!this.flight) this.camera = camera;
  }

  move(seconds) { // along the flight
    if (!this.flight) return;
    const { from, to, seconds: whole } = this.flight, passed = this.flight.passed += seconds;
    const share = Math.min(passed / whole, 1), s = share * share * (3 - 2 * share), mix = (a, b) => a + s * (b - a);
    this.camera = share < 1 ? {
      azimuth: mix(from.azimuth, to.azimuth), elevation: mix(from.elevation, to.elevation),
      distance: mix(from.distance, to.distance), target: from.target.map((value, k) => mix(value, to.target[k])),
    } : to;
    if (share === 1) this.flight = null;
  }

  orbit(x, y) { // degrees
    const { camera } = this;
    this.flight = null;
    this.camera = { ...camera, azimuth: camera.azimuth - x, elevation: clamp(camera.elevation + y, 3, 88) };
  }

  zoom(factor) {
    this.flight = null;
    this.camera = { ...this.camera, distance: clamp(this.camera.distance * factor, 8, 1000) };
  }

  look() { // what projecting needs, once for a picture
    this.view = { ...this.axes(), focal: this.focal };
    this.view.eye = add(this.camera.target, this.view.forward, -this.camera.distance);
  }

  project(point) { // pixels from the left and from the top, depth, pixels for a meter
    const { forward, right, up, eye, focal } = this.view, away = sub(point, eye), depth = dot(away, forward);
    const scale = focal / Math.max(depth, 0.1);
    return [this.width / 2 + dot(away, right) * scale, this.height / 2 - dot(away, up) * scale, depth, scale];
  }

  ray(x, y) { // direction of a pixel, one meter deep
    const { forward, right, up, focal } = this.view;
    return add(add(forward, right, (x - this.width / 2) / focal), up, (this.height / 2 - y) / focal);
  }

  onLevel(x, y, height) { // the point of a pixel at a height, or null above the horizon
    const way = this.ray(x, y), far = (height - this.view.eye[2]) / way[2];
    return far > 0 && far < 2000 ? add(this.view.eye, way, far) : null;
  }

  // arms: [{ place, elbow, hand, goal, touches, name, opacity, ... }], in space.
  draw(arms, colors, goalSize) {
    const { pen, ratio } = this;
    this.look();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    this.drawGround(colors);
    pen.drawImage(this.ground, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const jobs = [], groups = new Map();
    for (const arm of arms) groups.set(arm.opacity, [...(groups.get(arm.opacity) ?? []), arm]);
    for (const [opacity, some] of groups) this.drawShadows(some, colors, goalSize, opacity);
    for (const arm of arms) {
      const first = jobs.length, { place, elbow, hand, goal, touches } = arm, foot = [place[0], place[1], FLOOR];
      const near = this.project(goal)[2] - 0.9 * goalSize / 2; // what is behind its front shines through
      jobs.push([this.project(foot)[2], () => this.name(foot, arm.name, colors)]);
      jobs.push(this.rod(foot, place, RADIUS.post, colors.post, 0, RADIUS.base), this.ball(place, RADIUS.base, colors.base));
      const limb = arm.second ? colors.second : colors.limb;
      jobs.push(this.rod(place, elbow, RADIUS.limb, limb, RADIUS.base, RADIUS.elbow), this.ball(elbow, RADIUS.elbow, colors.base));
      jobs.push(this.rod(elbow, hand, RADIUS.limb, limb, RADIUS.elbow, HAND_RADIUS), this.ball(hand, HAND_RADIUS, colors.hand));
      if (arm.path) jobs.push([Infinity, () => this.line(arm.path, paint(colors.goal, 0.55), 1.5, [4, 5])]);
      if (arm.trail) jobs.push([this.project(hand)[2] + 0.1, () => this.trail(arm.trail, colors.hand)]);
      if (touches) jobs.push([this.project(goal)[2] + goalSize / 2, () => this.ring(goal, goalSize, colors, Math.PI)]);
      jobs.push([near, () => {
        this.ball(goal, goalSize / 2, touches ? colors.touched : colors.goal, touches ? 0.62 : 0.5)[1]();
        if (touches) this.ring(goal, goalSize, colors, 0);
      }]);
      for (const arc of arm.torques ?? []) jobs.push([-1, () => this.arrow(arc, colors.torque)]);
      if (arm.pull) jobs.push([-1, () => this.line([hand, arm.pull], paint(colors.torque), 2.5, [6, 4])]);
      for (const job of jobs.slice(first)) job.push(arm.opacity);
    }
    for (const [depth, job, opacity] of jobs.sort((a, b) => b[0] - a[0])) {
      pen.globalAlpha = opacity;
      if (depth > 0.5 || depth === -1) job();
    }
    pen.globalAlpha = 1;
  }

  drawGround(colors) {
    const key = JSON.stringify([this.camera, this.width, this.height, this.ratio, colors.sky]);
    if (this.kept === key) return;
    this.kept = key;
    Object.assign(this.ground, { width: this.canvas.width, height: this.canvas.height });
    const pen = this.ground.getContext("2d"), { target, distance } = this.camera, { forward, eye } = this.view;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.fillStyle = paint(colors.floor);
    pen.fillRect(0, 0, this.width, this.height);
    const reach = Math.min(Math.ceil(2.2 * distance / SQUARE), 60), first = [0, 1].map((k) => Math.round(target[k] / SQUARE) - reach);
    const rows = [...Array(2 * reach + 1).keys()].map((i) => [...Array(2 * reach + 1).keys()].map((j) =>
      this.project([(first[0] + i) * SQUARE, (first[1] + j) * SQUARE, FLOOR])));
    pen.fillStyle = paint(colors.square);
    pen.beginPath();
    for (let i = 0; i < 2 * reach; i++) for (let j = 0; j < 2 * reach; j++) {
      if ((first[0] + i + first[1] + j) & 1) continue;
      const corners = [rows[i][j], rows[i + 1][j], rows[i + 1][j + 1], rows[i][j + 1]];
      if (corners.some((corner) => corner[2] < 1)) continue;
      corners.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    }
    pen.fill();
    // The floor fades into the sky: a level line of the picture is one distance.
    const flat = [forward[0], forward[1], 0].map((value) => value / Math.hypot(forward[0], forward[1]));
    const at = (meters) => this.project([eye[0] + meters * flat[0], eye[1] + meters * flat[1], FLOOR])[1];
    const from = at(1e6), to = at(1.25 * distance + 20);
    const haze = pen.createLinearGradient(0, from, 0, Math.max(to, from + 1));
    haze.addColorStop(0, paint(colors.sky));
    haze.addColorStop(0.25, paint(colors.sky, 0.85));
    haze.addColorStop(1, paint(colors.sky, 0));
    pen.fillStyle = haze;
    pen.fillRect(0, 0, this.width, this.height);
  }

  drawShadows(arms, colors, goalSize, opacity) { // one path, so that no place darkens twice
    const { pen } = this, down = (p) => [p[0] - SUN[0] / SUN[2] * (p[2] - FLOOR), p[1] - SUN[1] / SUN[2] * (p[2] - FLOOR), FLOOR];
    const disk = (p, radius) => {
      const [x, y, depth, scale] = this.project(down(p));
      if (depth < 1) return;
      const flat = this.flatness(down(p));
      pen.moveTo(x + radius * scale, y);
      pen.ellipse(x, y, radius * scale, radius * scale * flat, 0, 0, 7);
    };
    const stripe = (a, b, radius) => {
      const p = down(a), q = down(b), way = sub(q, p), size = length(way);
      if (size < 1e-6) return;
      const side = [-way[1] / size * radius, way[0] / size * radius, 0];
      let corners = [add(p, side), add(q, side), add(q, side, -1), add(p, side, -1)].map((c) => this.project(c));
      if (corners.some((c) => c[2] < 1)) return;
      const area = corners.reduce((sum, c, k) => { const d = corners[(k + 1) % 4]; return sum + c[0] * d[1] - d[0] * c[1]; }, 0);
      if (area < 0) corners.reverse();
      corners.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
    };
    pen.beginPath();
    for (const { place, elbow, hand, goal } of arms) {
      stripe([place[0], place[1], FLOOR], place, RADIUS.post);
      stripe(place, elbow, RADIUS.limb);
      stripe(elbow, hand, RADIUS.limb);
      disk(place, RADIUS.base);
      disk(elbow, RADIUS.elbow);
      disk(hand, HAND_RADIUS);
      disk(goal, goalSize / 2);
    }
    pen.fillStyle = paint(colors.shadow, colors.shadow[3] * opacity);
    pen.fill();
  }

  flatness(point) { // height of a lying circle by its width
    const away = sub(point, this.view.eye);
    return Math.abs(away[2]) / length(away);
  }

  ball(center, radius, color, opacity = 1) { // [depth, what draws it]
    const [x, y, depth, scale] = this.project(center), r = radius * scale, { pen } = this;
    return [depth, () => {
      const light = pen.createRadialGradient(x - 0.35 * r, y - 0.45 * r, 0.05 * r, x, y, r);
      light.addColorStop(0, paint(color, opacity, 1.3));
      light.addColorStop(0.45, paint(color, opacity, 1));
      light.addColorStop(1, paint(color, Math.min(opacity + (opacity < 1 ? 0.2 : 0), 1), 0.6));
      pen.fillStyle = light;
      pen.beginPath();
      pen.arc(x, y, r, 0, 7);
      pen.fill();
    }];
  }

  rod(a, b, radius, color, first, last) { // between balls of these radii
    const way = sub(b, a), size = length(way), { pen } = this;
    const p = this.project(add(a, way, 0.9 * first / size)), q = this.project(add(b, way, -0.9 * last / size));
    return [(p[2] + q[2]) / 2, () => {
      const angle = Math.atan2(q[1] - p[1], q[0] - p[0]), [r, s] = [radius * p[3], radius * q[3]];
      const side = [-Math.sin(angle), Math.cos(angle)], up = side[1] > 0 || side[1] === 0 && side[0] > 0 ? -1 : 1;
      const light = pen.createLinearGradient(p[0] + up * side[0] * r, p[1] + up * side[1] * r, p[0] - up * side[0] * r, p[1] - up * side[1] * r);
      light.addColorStop(0, paint(color, 1, 0.92));
      light.addColorStop(0.3, paint(color, 1, 1.05));
      light.addColorStop(1, paint(color, 1, 0.5));
      pen.fillStyle = light;
      pen.beginPath();
      pen.arc(p[0], p[1], Math.max(r, 0.4), angle + Math.PI / 2, angle - Math.PI / 2);
      pen.arc(q[0], q[1], Math.max(s, 0.4), angle - Math.PI / 2, angle + Math.PI / 2);
      pen.fill();
    }];
  }

  ring(goal, goalSize, colors, begin) { // its back half begins at pi, its front half at 0
    const [x, y, , scale] = this.project(goal), r = goalSize / 2 * RADIUS.ring * scale, { pen } = this;
    pen.strokeStyle = paint(colors.ring);
    pen.lineWidth = Math.max(0.34 * scale, 1.6);
    pen.beginPath();
    pen.ellipse(x, y, r, r * this.flatness(goal), 0, begin, begin + Math.PI);
    pen.stroke();
  }

  name(foot, name, colors) {
    const [x, y, , scale] = this.project(foot), { pen } = this;
    pen.font = `600 ${clamp(1.7 * scale, 9, 22)}px system-ui, sans-serif`;
    pen.fillStyle = paint(colors.ink);
    pen.textAlign = "center";
    pen.fillText(name, x, y + clamp(1.9 * scale, 11, 26));
  }

  line(points, style, width, dash = []) {
    const { pen } = this;
    pen.strokeStyle = style;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    points.forEach((point, k) => { const [x, y] = this.project(point); if (k) pen.lineTo(x, y); else pen.moveTo(x, y); });
    pen.stroke();
    pen.setLineDash([]);
  }

  trail(points, color) { // older is fainter
    for (let k = 0; k + 3 < points.length; k += 3) this.line(points.slice(k, k + 4), paint(color, 0.6 * k / points.length), 2.5);
  }

  arrow(points, color) { // along a curve
    const { pen } = this, seen = points.map((point) => this.project(point)), last = seen.length - 1;
    if (last < 1) return;
    pen.lineCap = "round";
    this.line(points, paint(color), 4);
    pen.lineCap = "butt";
    const [a, b] = [seen[last - 1], seen[last]], angle = Math.atan2(b[1] - a[1], b[0] - a[0]);
    pen.fillStyle = paint(color);
    pen.beginPath();
    for (const [far, turn] of [[11, 0], [9, 2.3], [9, -2.3]]) pen.lineTo(b[0] + far * Math.cos(angle + turn), b[1] + far * Math.sin(angle + turn));
    pen.fill();
  }
}
