// Data of the page. Probabilities are stored in ten-thousandths, row by row: cause * d + effect.
const content = JSON.parse(byId("content").textContent);
const { names, labels } = content;
const d = names.length;
const UNIT = 10000;

// A wide page holds its most probable pairs only: places and values, from which the whole table is made.
function whole(cells, missing) {
  if (!content.wide) return cells;
  const out = new Int32Array(d * d).fill(missing);
  cells.at.forEach((place, k) => { out[place] = cells.value[k]; });
  return out;
}
content.edges = whole(content.edges, 0);
content.paths = whole(content.paths, -1);

const edge = (i, j) => content.edges[i * d + j] / UNIT;
const path = (i, j) => (content.paths[i * d + j] < 0 ? NaN : content.paths[i * d + j] / UNIT);
const arrow = (i, j) => names[i] + " → " + names[j];

const required = new Set(content.required);
const forbidden = new Set(content.forbidden);
const known = (i, j) =>
  required.has(i * d + j) ? "required by prior knowledge" : forbidden.has(i * d + j) ? "ruled out by prior knowledge" : "";

// Pairs: adjacency first, then the direction. Those in `content.arrows` are settled, the others open.
const settled = new Set(content.arrows);
const isSettled = (i, j) => settled.has(i * d + j);
const adjacency = (i, j) => Math.min(UNIT, content.edges[i * d + j] + content.edges[j * d + i]) / UNIT;
const share = (i, j) => (adjacency(i, j) ? Math.min(1, edge(i, j) / adjacency(i, j)) : 0);
const likelier = (i, j) => (edge(j, i) > edge(i, j) ? [j, i] : [i, j]);
const pairTitle = (i, j) =>
  isSettled(i, j) ? arrow(i, j) : isSettled(j, i) ? arrow(j, i) : names[i] + " — " + names[j];

function allPairs() {
  const out = [];
  for (let i = 0; i < d; i++) for (let j = i + 1; j < d; j++) if (!content.wide || path(i, j) >= 0) out.push(likelier(i, j));
  return out.sort((a, b) => adjacency(...b) - adjacency(...a));
}

// Signs, by i * d + j with i < j; none where effects are unknown.
const SIGNS = { plus: ["+", "positive"], minus: ["−", "negative"], undecided: ["±", "undecided"] };
const signs = new Map(Object.entries(content.signs || {}).flatMap(([kind, keys]) => keys.map((key) => [key, kind])));
const signOf = (i, j) => signs.get(Math.min(i, j) * d + Math.max(i, j)) || "";
const signName = content.effects && content.effects.linear ? "sign of the direct effect" : "sign of the effect";

// Effects: [cause, effect, mean, lower, upper, mean given a path]
const effects = new Map((content.effects ? content.effects.rows : []).map((row) => [row[0] * d + row[1], row]));
const effect = (i, j) => effects.get(i * d + j);
const signed = (value) => compact(value).replaceAll("-", "−");
