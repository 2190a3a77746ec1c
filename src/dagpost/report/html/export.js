// Pictures to save: the graph and the heat map as SVG and PNG, always in the light colours.
const SVG = byId("drawing").namespaceURI;
const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const MARGIN = 20, ROW = 30; // around the drawing; height of a node

function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, typeof value === "number" ? Number(value.toFixed(2)) : value);
  }
  if (text !== undefined) node.textContent = text;
  return node;
}

function picture(left, top, width, height, title) {
  const root = shape("svg", { viewBox: [left, top, width, height].map((v) => v.toFixed(1)).join(" "),
    width: Math.ceil(width), height: Math.ceil(height), "font-family": FONT });
  root.append(shape("title", {}, title), shape("rect", { x: left, y: top, width, height, fill: colour("--back") }));
  return root;
}

function saveSvg(name, root) {
  download(name, '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(root) + "\n", "image/svg+xml");
}

// Runs the work in the colours of print, whatever the scheme of the screen.
function inLight(work) {
  const before = document.documentElement.dataset.print;
  document.documentElement.dataset.print = "";
  redraw();
  try {
    work();
  } finally {
    if (before === undefined) delete document.documentElement.dataset.print;
    redraw();
  }
}

// ---- the graph

function headOf(end, from, kind, size, fill) {
  const length = Math.hypot(end.x - from.x, end.y - from.y) || 1;
  const [ux, uy] = [(end.x - from.x) / length, (end.y - from.y) / length];
  const at = (back, side) => (end.x - back * ux - side * uy).toFixed(1) + "," + (end.y - back * uy + side * ux).toFixed(1);
  const corners = kind === "minus" ? [at(0, -size), at(0, size), at(2.6, size), at(2.6, -size)]
    : [at(0, 0), at(1.6 * size, 0.75 * size), at(1.6 * size, -0.75 * size)];
  return shape("polygon", { points: corners.join(" "), fill });
}

function svgEdge(drawn, faint) {
  const { i, j, p, bend, label } = drawn.data();
  const open = drawn.hasClass("open"), kind = kindOf(i, j);
  const ink = colour(["minus", "undecided", "target"].includes(kind) ? "--" + kind : "--edge");
  const start = drawn.sourceEndpoint(), end = drawn.targetEndpoint();
  const [a, b] = [drawn.source().position(), drawn.target().position()];
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const control = { x: (a.x + b.x) / 2 - (bend * (b.y - a.y)) / length, y: (a.y + b.y) / 2 + (bend * (b.x - a.x)) / length };
  const group = shape("g", { opacity: faint ? 0.14 : 0.3 + 0.7 * p });
  const wide = 1 + p * (d > 40 ? 1.4 : 2.6);
  const curve = [start, control, end].map(({ x, y }) => x.toFixed(1) + " " + y.toFixed(1));
  group.append(shape("path", { d: "M " + curve[0] + " Q " + curve[1] + " " + curve[2], fill: "none", stroke: ink,
    "stroke-width": wide, ...(open ? { "stroke-dasharray": "7 4" } : {}) }));
  if (!open) group.append(headOf(end, control, kind, 3 + wide, ink));
  if (label && drawn.hasClass("labelled") && !faint) {
    group.append(shape("text", { x: (start.x + 2 * control.x + end.x) / 4, y: (start.y + 2 * control.y + end.y) / 4 + 4,
      "font-size": 11, "text-anchor": "middle", fill: colour("--ink"), stroke: colour("--back"), "stroke-width": 3,
      "paint-order": "stroke" }, label));
  }
  return group;
}

function svgNode(j) {
  const group = shape("g", {}), x = places.x[j], y = places.y[j], width = places.widths[j];
  const look = { fill: colour("--node"), stroke: colour(isCondition(j) ? "--target" : "--node-rule"), "stroke-width": 1.2 };
  group.append(isCondition(j) ? shape("ellipse", { cx: x, cy: y, rx: width / 2, ry: ROW / 2, ...look })
    : shape("rect", { x: x - width / 2, y: y - ROW / 2, width, height: ROW, rx: 6, ...look }),
  shape("text", { x, y: y + 4.5, "font-size": 13, "text-anchor": "middle", fill: colour("--ink") }, allLabels[j]));
  return group;
}

function legendLines() {
  const lines = [[byId("shown").textContent + (slider.disabled ? "" : " (probability at least " + slider.value + ")"), "--ink"]];
  if (!byId("sign-legend").hidden) {
    lines.push(["+ positive effect", "--edge"], ["− negative effect", "--minus"], ["± sign undecided", "--undecided"]);
  }
  if (!byId("condition-legend").hidden) lines.push(["ellipses: conditions, with edges to what they change", "--target"]);
  if (!byId("open-legend").hidden) lines.push(["dashed: direction open", "--ink"]);
  return lines;
}

function graphSvg() {
  const visible = cy.edges(":visible"), { x1, y1, x2, y2 } = cy.elements(":visible").boundingBox();
  const lines = legendLines(), space = 18 * lines.length + 12;
  const width = Math.max(x2 - x1, 320) + 2 * MARGIN, height = y2 - y1 + 2 * MARGIN + space;
  const root = picture(x1 - MARGIN, y1 - MARGIN, width, height, "Posterior over causal graphs");
  visible.forEach((drawn) => root.append(svgEdge(drawn, drawn.hasClass("faint"))));
  cy.nodes().not(".away").forEach((node) => root.append(svgNode(node.data("index"))));
  lines.forEach(([text, ink], k) => root.append(shape("text", { x: x1, y: y2 + MARGIN + 14 + 18 * k, "font-size": 12,
    fill: colour(ink) }, text)));
  return root;
}

// ---- the heat map

function heatSvg() {
  const { order, margin, cell } = plan, size = Math.max(4, Math.min(13, cell - 1)), side = d * cell, shade = shades();
  const room = Math.max(margin, 0.62 * size * Math.max(...labels.map((text) => text.length)) + 10);
  const root = picture(0, 0, room + side + 2, room + side + 2, "Edge probabilities; row: cause, column: effect");
  if (content.wide) {
    root.append(shape("rect", { x: room, y: room, width: side, height: side, fill: "rgb(" + shade(0).join(",") + ")" }));
  }
  order.forEach((i, row) => order.forEach((j, column) => {
    if (content.wide && i !== j && !content.edges[i * d + j]) return;
    const fill = shade(edge(i, j)), x = room + column * cell, y = room + row * cell;
    root.append(shape("rect", { x, y, width: cell, height: cell, fill: i === j ? colour("--heat-none") : "rgb(" + fill.join(",") + ")" }));
    if (i !== j && cell >= 30 && edge(i, j) >= 0.005) {
      root.append(shape("text", { x: x + cell / 2, y: y + cell / 2 + 4, "font-size": 11, "text-anchor": "middle", fill: textColour(fill) },
        edge(i, j).toFixed(2)));
    }
  }));
  if (cell > 3) order.forEach((j, k) => {
    const at = room + (k + 0.5) * cell, style = { "font-size": size, fill: colour("--ink") };
    root.append(shape("text", { ...style, x: room - 6, y: at + size / 3, "text-anchor": "end" }, labels[j]),
      shape("text", { ...style, transform: "translate(" + (at + size / 3).toFixed(1) + " " + (room - 6).toFixed(1) + ") rotate(-90)" }, labels[j]));
  });
  return root;
}

function makeExports() {
  byId("graph-svg").addEventListener("click", () => inLight(() => saveSvg("graph.svg", graphSvg())));
  byId("graph-png").addEventListener("click", () => inLight(() =>
    download("graph.png", cy.png({ output: "blob", full: true, scale: d > 40 ? 2 : 3, maxWidth: 6000, maxHeight: 6000, bg: colour("--back") }))));
  byId("heat-svg").addEventListener("click", () => inLight(() => saveSvg("heat-map.svg", heatSvg())));
  byId("heat-png").addEventListener("click", () => inLight(() => {
    sharpness = 3;
    drawHeat();
    sharpness = 0;
    const [type, bytes] = heat.toDataURL("image/png").split(",");
    download("heat-map.png", new Blob([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], { type: type.slice(5, 14) }));
  }));
}
