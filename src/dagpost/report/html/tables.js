// The table of pairs and the table of effects.
function link(i, j) {
  const button = element("button", { type: "button", class: "link", "aria-label": "Details of " + pairTitle(i, j) }, names[i]);
  button.addEventListener("click", () => {
    chooseEdge(i, j);
    byId("graph-section").scrollIntoView();
  });
  return button;
}

function bar(p) {
  const filled = element("i");
  filled.style.width = 100 * p + "%";
  const out = document.createDocumentFragment();
  out.append(element("span", { class: "bar", "aria-hidden": "true" }, filled), fixed3(p));
  return out;
}

const number = (name, csv, value) => ({ name, csv, number: true, value, text: (row) => fixed3(value(row)) });
const causeAndEffect = [
  { name: "cause", csv: "cause", value: ([i]) => names[i], draw: ([i, j]) => link(i, j) },
  { name: "effect", csv: "effect", value: ([, j]) => names[j], text: ([, j]) => names[j] },
];
const round = (p) => Math.round(p * UNIT) / UNIT;

function makeTables() {
  const signColumn = { name: signName, csv: "sign", value: ([i, j]) => (SIGNS[signOf(i, j)] || ["", ""])[1],
    text: ([i, j]) => (SIGNS[signOf(i, j)] || [""])[0] };
  byId("share-text").textContent = String(content.share);
  if (content.signs) {
    byId("sign-text").textContent = (content.effects.linear ? "The sign is that of the direct effect, the weight of the edge"
      : "The sign is that of the causal effect where there is an edge") + "; ± where neither sign has " +
      Math.round(100 * content.signLevel) + " % of the probability.";
  }
  sortedTable(byId("edge-table"), {
    caption: "pairs", file: "pairs.csv", first: 2, rows: ranked,
    columns: [
      ...causeAndEffect,
      { ...number("adjacent", "adjacency", ([i, j]) => adjacency(i, j)), draw: ([i, j]) => bar(adjacency(i, j)) },
      { name: "direction", csv: "direction", value: (pair) => (isSettled(...pair) ? "settled" : "open"),
        text: ([i, j]) => (isSettled(i, j) ? "→" : "open") },
      { ...number("share", "share", ([i, j]) => round(share(i, j))), text: ([i, j]) => share(i, j).toFixed(2) },
      ...(content.signs ? [signColumn] : []),
      number("cause → effect", "probability", ([i, j]) => edge(i, j)),
      number("effect → cause", "reverse", ([i, j]) => edge(j, i)),
      number("path", "path", ([i, j]) => path(i, j)),
    ],
  });
  if (!content.effects) {
    byId("effects-text").textContent = content.noEffects;
    return;
  }
  const probabilities = "How much more probable the last level of the effect becomes, on average, when the cause is set " +
    "from its first level to its last one (column “levels”)";
  const change = content.effects.linear ? "when the cause is set one unit higher"
    : "for each unit of the cause, between one standard deviation below its mean and one above";
  const what = content.effects.categorical ? probabilities
    : "How much the effect changes, on average, " + change + ", in the units of the table";
  byId("effects-text").textContent = what + ". “Given a path” is the mean over the graphs in which a directed path leads from cause to " +
    "effect; “overall” counts the other graphs as 0, and so does the central interval of " +
    Math.round(100 * content.effects.level) + " %. Listed are paths with probability 0.01 or more.";
  const plain = (name, csv, at) =>
    ({ name, csv, number: true, value: (row) => row[at], text: (row) => signed(row[at]) });
  const levels = content.effects.categorical
    ? [{ name: "levels", csv: "levels", value: (row) => row[6], text: (row) => row[6] }] : [];
  sortedTable(byId("effect-table"), {
    caption: "causal effects", file: "effects.csv", first: 6, rows: content.effects.rows,
    columns: [...causeAndEffect, ...levels, plain("mean given a path", "mean_given_path", 5), plain("overall mean", "mean", 2),
      plain("lower", "lower", 3), plain("upper", "upper", 4), number("path", "path", ([i, j]) => path(i, j))],
  });
}
