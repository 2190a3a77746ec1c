// Views of the graph: edges above the threshold, the consensus graph, or one equivalence class.
const slider = byId("threshold"), view = byId("view"), ranked = allEdges();

const graphs = [
  { title: "Consensus graph", short: "consensus graph", directed: content.consensus, open: [] },
  ...content.classes.map((item, k) => ({
    title: "Class " + (k + 1) + ": probability " + fixed3(item.probability),
    short: "class " + (k + 1) + " (probability " + fixed3(item.probability) + ")",
    directed: item.directed, open: item.open,
  })),
];

function showView() {
  const chosen = graphs[Number(view.value)];
  byId("threshold-label").hidden = slider.disabled = Boolean(chosen);
  byId("open-legend").hidden = !chosen || !chosen.open.length;
  const threshold = Math.round(Number(slider.value) * UNIT);
  byId("threshold-value").textContent = Number(slider.value).toFixed(2);
  let list;
  if (chosen) {
    const toEdge = (open) => ([i, j]) => ({ i, j, p: open ? edge(i, j) + edge(j, i) : edge(i, j), open });
    list = [...chosen.directed.map(toEdge(false)), ...chosen.open.map(toEdge(true))];
  } else {
    const end = ranked.findIndex(([i, j]) => content.edges[i * d + j] < threshold);
    list = ranked.slice(0, end < 0 ? ranked.length : end).map(([i, j]) => ({ i, j, p: edge(i, j), open: false }));
  }
  drawEdges(list);
  byId("shown").textContent = list.length + " of " + ranked.length + " possible edges shown";
}

function makeViews() {
  view.append(element("option", { value: "all" }, "edges by probability"),
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
  const best = content.classes[0].probability;
  if (best < 0.05) byId("graphs-note").textContent = "No class stands out here: the most probable has " + fixed3(best) + ".";
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
