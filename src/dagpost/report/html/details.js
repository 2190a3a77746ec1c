// The panel beside the graph with all numbers of an edge or a variable.
const details = byId("details");

function pairsTable(rows) {
  return element("table", {}, element("tbody", {}, ...rows.map(([what, value]) =>
    element("tr", {}, element("td", {}, what), element("td", { class: "number" }, value)))));
}

// The mean given a path; below it the probability of a path, and the mean over all graphs with its interval.
function effectLines(row) {
  const out = document.createDocumentFragment();
  out.append(element("div", {}, signed(row[5]) + " given a path"),
    ...["path " + fixed3(path(row[0], row[1])), "overall " + signed(row[2]), "[" + signed(row[3]) + ", " + signed(row[4]) + "]"]
      .map((line) => element("div", { class: "small" }, line)));
  return out;
}

function fillDetails(title, parts) {
  details.classList.add("picked");
  details.replaceChildren(element("h3", {}, title), ...parts);
  details.scrollTop = 0;
}

function explain() {
  details.classList.remove("picked");
  details.replaceChildren(element("h3", {}, "Details"), element("p", { class: "small" },
    "Choose a pair or a variable: in the graph, in the heat map, in the table of pairs, or with “Variable” above."));
}

function edgeDetails(i, j) {
  const parts = [pairsTable([
    ["adjacent, either way", fixed3(adjacency(i, j))],
    [arrow(i, j), fixed3(edge(i, j))], [arrow(j, i), fixed3(edge(j, i))],
    ["not adjacent", fixed3(1 - adjacency(i, j))],
    ["share of " + arrow(i, j), share(i, j).toFixed(2) + (isSettled(i, j) || isSettled(j, i) ? "" : ", open")],
    ...(signOf(i, j) ? [[signName, SIGNS[signOf(i, j)].join(" ")]] : []),
    ["a directed path from " + names[i] + " to " + names[j], fixed3(path(i, j))],
    ["a directed path from " + names[j] + " to " + names[i], fixed3(path(j, i))],
  ])];
  const effectPairs = [[i, j], [j, i]].filter(([a, b]) => effect(a, b));
  if (effectPairs.length) {
    parts.push(element("h4", {}, "Average causal effect, with " + Math.round(100 * content.effects.level) + " % interval"),
      pairsTable(effectPairs.map(([a, b]) => [names[a] + " on " + names[b], effectLines(effect(a, b))])));
  }
  for (const [a, b] of [[i, j], [j, i]]) {
    if (known(a, b)) parts.push(element("p", {}, arrow(a, b) + ": " + known(a, b)));
  }
  fillDetails(pairTitle(i, j), parts);
}

function nodeDetails(j) {
  const parts = [];
  const list = (title, pairs) => {
    const likely = pairs.filter(([, p]) => p >= 0.01).slice(0, 12);
    parts.push(element("h4", {}, title), likely.length ? pairsTable(likely.map(([k, p]) => [allNames[k], fixed3(p)]))
      : element("p", {}, "none with probability 0.01 or more"));
  };
  list("Direct causes (parents)", causesOf(j));
  parts.push(element("h4", {}, "Most probable sets of parents"), pairsTable(content.parentSets[j].map(([set, p]) =>
    [set.length ? set.map((k) => names[k]).join(", ") : "no parents", fixed3(p)])));
  list("Direct effects (children)", effectsOf(j));
  if (conditions.names.length) list("Conditions that change it", conditionsOf(j));
  const strong = (of) => of.filter(Boolean).sort((a, b) => path(b[0], b[1]) - path(a[0], a[1])).slice(0, 8);
  const on = strong(others(j).map((k) => effect(j, k)));
  if (on.length) {
    parts.push(element("h4", {}, "Average causal effects of it"),
      pairsTable(on.map((row) => ["on " + names[row[1]], effectLines(row)])));
  }
  fillDetails(names[j], parts);
}
