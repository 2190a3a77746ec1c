// Data of the page. Probabilities are stored in ten-thousandths, row by row: cause * d + effect.
const content = JSON.parse(byId("content").textContent);
const { names, labels } = content;
const d = names.length;
const UNIT = 10000;

const edge = (i, j) => content.edges[i * d + j] / UNIT;
const path = (i, j) => content.paths[i * d + j] / UNIT;
const arrow = (i, j) => names[i] + " → " + names[j];

const required = new Set(content.required);
const forbidden = new Set(content.forbidden);
const known = (i, j) =>
  required.has(i * d + j) ? "required by prior knowledge" : forbidden.has(i * d + j) ? "ruled out by prior knowledge" : "";

const effects = new Map((content.effects ? content.effects.rows : []).map((row) => [row[0] * d + row[1], row]));
const effect = (i, j) => effects.get(i * d + j);
const interval = ([, , mean, low, high]) => compact(mean) + " [" + compact(low) + ",\u00a0" + compact(high) + "]";

function allEdges() {
  const out = [];
  for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) if (i !== j) out.push([i, j]);
  return out.sort((a, b) => content.edges[b[0] * d + b[1]] - content.edges[a[0] * d + a[1]]);
}
