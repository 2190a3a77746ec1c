// Views of the graph: pairs above the threshold, the consensus graph, or one equivalence class.
const slider = byId("threshold"), view = byId("view"), ranked = allPairs();

const percent = (p) => Number((100 * p).toPrecision(2)) + " %";
const graphs = [
  { title: "Consensus graph", short: "consensus graph", directed: content.consensus, open: [] },
  ...content.classes.map((item, k) => ({
    title: "Class " + (k + 1) + ": probability " + percent(item.probability),
    short: "class " + (k + 1) + " (probability " + percent(item.probability) + ")",
    directed: item.directed, open: item.open,
  })),
];

function showView() {
  const chosen = graphs[Number(view.value)];
  byId("threshold-label").hidden = slider.disabled = Boolean(chosen);
  const threshold = Number(slider.value);
  byId("threshold-value").textContent = threshold.toFixed(2);
  let list;
  if (chosen) {
    const toPair = (open) => ([i, j]) => ({ i, j, open });
    list = [...chosen.directed.map(toPair(false)), ...chosen.open.map(toPair(true))];
  } else {
    const end = ranked.findIndex(([i, j]) => adjacency(i, j) < threshold - 0.5 / UNIT);
    list = ranked.slice(0, end < 0 ? ranked.length : end).map(([i, j]) => ({ i, j, open: !isSettled(i, j) }));
  }
  const above = list.length;
  if (content.wide) list = list.slice(0, content.wide);
  const targets = shownTargets(chosen ? CONSENSUS : threshold);
  drawEdges([...list, ...targets]);
  const open = list.filter((pair) => pair.open).length;
  byId("open-legend").hidden = !open;
  byId("condition-legend").hidden = !conditions.names.length || !conditionSwitch.checked;
  byId("sign-legend").hidden = !list.some(({ i, j }) => signOf(i, j));
  byId("shown").textContent = list.length + " of " + (content.wide ? above : ranked.length) + " pairs shown" +
    (content.wide ? ", the most probable first; the table below can be searched" : "") +
    (open ? ", " + open + " with an open direction" : "") +
    (targets.length ? "; " + targets.length + " targets of conditions" : "");
}

function makeViews() {
  view.append(element("option", { value: "all" }, "pairs by probability"),
    ...graphs.map(({ short }, k) => element("option", { value: k }, short)));
  byId("node").append(element("option", { value: "" }, "choose…"),
    ...names.map((name, j) => element("option", { value: j }, name)));
  slider.value = content.start;
  let waiting = false;
  slider.addEventListener("input", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; showView(); });
  });
  view.addEventListener("change", showView);
  byId("node").addEventListener("change", ({ target }) =>
    target.value === "" ? chooseNothing() : chooseNode(Number(target.value)));
  byId("graphs-note").textContent = content.bestClass === null ? "Classes are not computed for so many variables."
    : !content.classes.length
    ? "No equivalence class has more than " + percent(content.bestClass) + " of the probability, so none is shown."
    : "The classes shown hold " + percent(content.classes.reduce((sum, item) => sum + item.probability, 0)) +
      " of the probability.";
  byId("graph-list").append(...graphs.map(card));
}

function card({ title, directed, open }, k) {
  const show = element("button", { type: "button" }, "Show in the graph");
  show.addEventListener("click", () => {
    view.value = String(k);
    showView();
    byId("graph-section").scrollIntoView();
    view.focus({ preventScroll: true });
  });
  const size = directed.length + " directed edges" + (k ? ", " + open.length + " pairs with open direction" : "");
  const lines = [...directed.map(([i, j]) => arrow(i, j)), ...open.map(([i, j]) => names[i] + " — " + names[j])];
  return element("article", { class: "card" }, element("h3", {}, title), element("p", { class: "small" }, size), show,
    element("details", {}, element("summary", {}, "Edges"),
      element("ul", {}, ...lines.map((line) => element("li", {}, line)))));
}
