// What the interactive figures share.
document.documentElement.dataset.drawn = "";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const short = (number) => String(+number.toFixed(2));
function add(parent, tag, attributes, text = "") { // an SVG element
  const element = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));
  for (const [name, value] of Object.entries(attributes)) if (value !== false) element.setAttribute(name, value);
  element.textContent = text;
}
function canvas(name) { // an SVG emptied, in units of pixels
  const svg = byId(name), width = svg.clientWidth || 600, height = svg.clientHeight || 300;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return [svg, width, height];
}
