// Heat map of all edge probabilities, on a canvas.
const heat = byId("heat-map"), heatOrder = byId("heat-order");
const plan = {}; // order, cell size and margin of the last drawing
let sharpness = 0; // pixels per unit of length; 0: those of the screen

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function shades() {
  const low = channels(colour("--heat-low")), high = channels(colour("--heat-high"));
  return (p) => low.map((from, k) => Math.round(from + (high[k] - from) * Math.pow(p, 0.85)));
}

function textColour(shade) {
  const [r, g, b] = shade.map((v) => (v / 255 <= 0.04 ? v / 3294 : Math.pow((v / 255 + 0.055) / 1.055, 2.4)));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

function prepareCanvas(canvas, width, height) {
  const ratio = sharpness || Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

function drawHeat() {
  const order = heatOrder.value === "causal" ? content.order : names.map((_, j) => j);
  const font = (size) => size + "px system-ui, sans-serif";
  const room = Math.max(320, heat.parentElement.clientWidth) - 8;
  const least = content.wide ? 1 : 3; // pixels of a cell
  const guess = Math.max(least, Math.min(46, Math.floor((room - 120) / d)));
  const size = Math.min(13, guess - 1);
  const labelled = size >= 6;
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = font(size);
  const margin = labelled ? Math.ceil(Math.max(...labels.map((text) => ruler.measureText(text).width))) + 10 : 6;
  const cell = Math.max(least, Math.min(46, Math.floor((room - margin) / d)));
  const pen = prepareCanvas(heat, margin + d * cell + 2, margin + d * cell + 2);
  const shade = shades();
  pen.fillStyle = colour("--back");
  pen.fillRect(0, 0, margin + d * cell + 2, margin + d * cell + 2);
  if (content.wide) {
    pen.fillStyle = "rgb(" + shade(0).join(",") + ")";
    pen.fillRect(margin, margin, d * cell, d * cell);
  }
  order.forEach((i, row) => order.forEach((j, column) => {
    if (content.wide && i !== j && !content.edges[i * d + j]) return; // the background is its colour
    const fill = shade(edge(i, j));
    pen.fillStyle = i === j ? colour("--heat-none") : "rgb(" + fill.join(",") + ")";
    const gap = cell > 12 ? 1 : 0;
    pen.fillRect(margin + column * cell, margin + row * cell, cell - gap, cell - gap);
    if (i !== j && cell >= 30 && content.edges[i * d + j] >= 50) {
      pen.font = font(11);
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = textColour(fill);
      pen.fillText(edge(i, j).toFixed(2), margin + (column + 0.5) * cell, margin + (row + 0.5) * cell);
    }
  }));
  if (labelled) {
    pen.fillStyle = colour("--ink");
    pen.font = font(size);
    pen.textBaseline = "middle";
    order.forEach((j, k) => {
      const at = margin + (k + 0.5) * cell;
      pen.textAlign = "right";
      pen.fillText(labels[j], margin - 6, at);
      pen.save();
      pen.translate(at, margin - 6);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillText(labels[j], 0, 0);
      pen.restore();
    });
  }
  pen.strokeStyle = colour("--rule");
  pen.strokeRect(margin - 0.5, margin - 0.5, d * cell + 1, d * cell + 1);
  Object.assign(plan, { order, cell, margin });
  const scale = prepareCanvas(byId("heat-scale"), 160, 12);
  for (let x = 0; x < 160; x++) {
    scale.fillStyle = "rgb(" + shade(x / 159).join(",") + ")";
    scale.fillRect(x, 0, 1, 12);
  }
}

function underPointer(event) {
  const frame = heat.getBoundingClientRect();
  const at = (offset) => plan.order[Math.floor((offset - plan.margin) / plan.cell)];
  const i = at(event.clientY - frame.top), j = at(event.clientX - frame.left);
  return i === undefined || j === undefined || i === j ? null : [i, j];
}

function makeHeat() {
  drawHeat();
  heatOrder.addEventListener("change", drawHeat);
  heat.addEventListener("mousemove", (event) => {
    const pair = underPointer(event);
    if (pair) showTooltip(event.clientX, event.clientY, arrow(...pair), edgeLines(...pair));
    else hideTooltip();
  });
  heat.addEventListener("mouseleave", hideTooltip);
  heat.addEventListener("click", (event) => {
    const pair = underPointer(event);
    if (pair) chooseEdge(...pair);
  });
}
