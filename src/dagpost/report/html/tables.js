// The edge table and the table of effects.
function link(i, j) {
  const button = element("button", { type: "button", class: "link", "aria-label": "Details of " + arrow(i, j) }, names[i]);
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
  sortedTable(byId("edge-table"), {
    caption: "edges", file: "edges.csv", first: 2, rows: ranked,
    columns: [
      ...causeAndEffect,
      { ...number("probability", "probability", ([i, j]) => edge(i, j)), draw: ([i, j]) => bar(edge(i, j)) },
      number("other direction", "reverse", ([i, j]) => edge(j, i)),
      number("either way", "either", ([i, j]) => round(edge(i, j) + edge(j, i))),
      number("path", "path", ([i, j]) => path(i, j)),
    ],
  });
  if (!content.effects) {
    byId("effects-text").textContent = content.noEffects;
    return;
  }
  const change = content.effects.linear ? "when the cause is set one unit higher"
    : "for each unit of the cause, between one standard deviation below its mean and one above";
  byId("effects-text").textContent = "How much the effect changes, on average, " + change +
    ", in the units of the table; 0 where no path leads there. Averaged over graphs and parameters, with a central interval " +
    "of " + Math.round(100 * content.effects.level) + " %. Pairs joined by a path with probability 0.01 or more.";
  const plain = (name, at) => ({ name, csv: name, number: true, value: (row) => row[at], text: (row) => compact(row[at]) });
  sortedTable(byId("effect-table"), {
    caption: "causal effects", file: "effects.csv", first: 5, rows: content.effects.rows,
    columns: [...causeAndEffect, plain("mean", 2), plain("lower", 3), plain("upper", 4),
      number("path", "path", ([i, j]) => path(i, j))],
  });
}
