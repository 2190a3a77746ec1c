// The graph. Node positions come with the page and never change; views determine which edges are visible.
const box = byId("graph");
const LARGEST_FIT = 1.25; // largest zoom when the graph is fitted to its box

const cy = cytoscape({
  container: box,
  elements: allNames.map((_, j) => ({
    data: { id: "n" + j, index: j, label: allLabels[j], width: places.widths[j] },
    position: { x: places.x[j], y: places.y[j] },
    classes: isCondition(j) ? "condition" : "",
  })),
  layout: { name: "preset", fit: false },
  style: graphStyle(),
  minZoom: 0.05, maxZoom: 5, autoungrabify: true, boxSelectionEnabled: false, selectionType: "single",
  userZoomingEnabled: false, // the wheel scrolls the page until the graph has the focus
  hideEdgesOnViewport: d > 60,
});

function graphStyle() {
  const node = { shape: "round-rectangle", width: "data(width)", height: 30, label: "data(label)",
    "text-valign": "center", "text-halign": "center", "font-size": 13, "font-family": "system-ui, sans-serif",
    color: colour("--ink"), "background-color": colour("--node"), "border-width": 1.2,
    "border-color": colour("--node-rule"), "overlay-opacity": 0 };
  const line = { width: "mapData(p, 0, 1, 1, " + (d > 40 ? 2.4 : 3.6) + ")", opacity: "mapData(p, 0, 1, 0.3, 1)",
    "curve-style": "unbundled-bezier", "control-point-distances": "data(bend)", "control-point-weights": 0.5,
    "target-arrow-shape": "triangle", "arrow-scale": 1.05, "overlay-opacity": 0, ...inColour("--edge") };
  const text = { label: "data(label)", "font-size": 11, "font-family": "system-ui, sans-serif", color: colour("--ink"),
    "text-background-color": colour("--back"), "text-background-opacity": 0.85, "text-background-padding": 1.5 };
  const chosen = colour("--chosen");
  return [
    { selector: "node", style: node }, { selector: "edge", style: line }, { selector: "edge.labelled", style: text },
    { selector: "node.condition", style: { shape: "ellipse", "border-color": colour("--target") } },
    { selector: "edge.target", style: inColour("--target") },
    { selector: "edge.minus", style: { ...inColour("--minus"), "target-arrow-shape": "tee", "arrow-scale": 1.3 } },
    { selector: "edge.undecided", style: inColour("--undecided") },
    { selector: "edge.open", style: { "target-arrow-shape": "none", "line-style": "dashed", "line-dash-pattern": [7, 4] } },
    { selector: ".away", style: { display: "none" } },
    { selector: "edge.faint", style: { opacity: 0.14, "text-opacity": 0 } },
    { selector: "node.faint", style: { opacity: 0.35 } },
    { selector: "node.chosen", style: { "border-color": chosen, "border-width": 3 } },
    { selector: "edge.chosen", style: { opacity: 1, "z-index": 9, "underlay-color": chosen, "underlay-opacity": 0.25,
      "underlay-padding": 4 } },
  ];
}

function inColour(name) {
  return { "line-color": colour(name), "target-arrow-color": colour(name) };
}

// ---- visible pairs: [{i, j, open}]

const MOST_LABELS = 40, SURE = 0.995; // most numbers in the graph; arrows this probable get none
let shownEdges = new Set();

function drawEdges(list) {
  const visible = new Set();
  const fresh = [];
  for (const { i, j, open } of list) {
    const id = i + (open ? "~" : "-") + j, p = strength(i, j);
    visible.add(id);
    if (cy.getElementById(id).empty()) {
      const label = open || p < SURE ? p.toFixed(2) : "";
      const data = { id, source: "n" + i, target: "n" + j, i, j, p, label, bend: bendOf(i, j) };
      fresh.push({ group: "edges", data, classes: [open ? "open" : "", kindOf(i, j)].join(" ") });
    }
  }
  cy.batch(() => {
    for (const id of shownEdges) if (!visible.has(id)) cy.getElementById(id).addClass("away");
    for (const id of visible) if (!shownEdges.has(id)) cy.getElementById(id).removeClass("away");
    cy.add(fresh);
    cy.nodes(".condition").toggleClass("away", !conditionSwitch.checked);
    const numbers = list.filter(({ i, j, open }) => open || strength(i, j) < SURE).length;
    cy.edges().toggleClass("labelled", numbers <= MOST_LABELS);
    byId("number-legend").hidden = !numbers || numbers > MOST_LABELS;
  });
  shownEdges = visible;
  if (content.wide) hideLonelyNodes();
  if (chosenNode !== null) spotlight(cy.getElementById("n" + chosenNode));
}

// On a wide page: variables that no visible pair joins are left out, but for the chosen one.
function hideLonelyNodes() {
  const joined = new Set([...shownEdges].flatMap((id) => id.split(/[-~]/).map(Number)));
  cy.batch(() => cy.nodes().forEach((node) => {
    const j = node.data("index");
    node.toggleClass("away", !joined.has(j) && j !== chosenNode);
  }));
}

// ---- hover and selection

let chosenNode = null;

function clearSpotlight() {
  chosenNode = null;
  cy.elements().removeClass("faint chosen");
}

function spotlight(target) {
  cy.batch(() => {
    cy.elements().removeClass("faint chosen");
    const near = target.isNode() ? target.closedNeighborhood() : target.union(target.connectedNodes());
    cy.elements().not(near).addClass("faint");
    target.addClass("chosen");
    if (target.isNode()) target.connectedEdges().addClass("chosen");
  });
}

function chooseEdge(i, j) {
  clearSpotlight();
  const shown = ["-", "~"].flatMap((link) => [i + link + j, j + link + i]).find((id) => shownEdges.has(id));
  if (shown) spotlight(cy.getElementById(shown));
  byId("node").value = "";
  edgeDetails(...likelier(i, j));
}

function chooseNode(j) {
  clearSpotlight();
  chosenNode = j;
  if (content.wide) hideLonelyNodes();
  spotlight(cy.getElementById("n" + j));
  byId("node").value = isCondition(j) ? "" : String(j);
  (isCondition(j) ? conditionDetails : nodeDetails)(j);
}

function chooseNothing() {
  clearSpotlight();
  byId("node").value = "";
  explain();
}

cy.on("mousemove", "edge", ({ originalEvent: at, target }) => {
  const { i, j } = target.data();
  if (isCondition(i)) showTooltip(at.clientX, at.clientY, allNames[i] + " changes " + names[j], [fixed3(changes(i, j))]);
  else showTooltip(at.clientX, at.clientY, pairTitle(i, j), edgeLines(i, j));
});
cy.on("mousemove", "node", ({ originalEvent: at, target }) => {
  const j = target.data("index");
  showTooltip(at.clientX, at.clientY, allNames[j], (isCondition(j) ? conditionLines : nodeLines)(j));
});
cy.on("mouseout", hideTooltip);
cy.on("tap", "edge", ({ target }) => {
  const { i, j } = target.data();
  if (isCondition(i)) chooseNode(i);
  else chooseEdge(i, j);
});
cy.on("tap", "node", ({ target }) => chooseNode(target.data("index")));
cy.on("tap", (event) => event.target === cy && chooseNothing());

// ---- zoom and position

let moved = false;

function fitView() {
  moved = false;
  cy.fit(content.wide ? cy.elements(":visible") : undefined, 18);
  if (cy.zoom() > LARGEST_FIT) cy.zoom(LARGEST_FIT);
  cy.center();
}

function zoomBy(factor) {
  moved = true;
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: box.clientWidth / 2, y: box.clientHeight / 2 } });
}

function resizeGraph() {
  const { w, h } = cy.elements(content.wide ? ":visible" : "*").boundingBox();
  const height = (h * Math.min(LARGEST_FIT, box.clientWidth / w)) + 40;
  box.style.height = Math.round(Math.min(Math.max(height, 340), d > 40 ? 920 : 760)) + "px";
  cy.resize();
  if (!moved) fitView();
}

cy.on("tapstart", () => box.focus({ preventScroll: true }));
cy.on("dragpan scrollzoom pinchzoom", () => { moved = true; });
box.addEventListener("focus", () => cy.userZoomingEnabled(true));
box.addEventListener("blur", () => cy.userZoomingEnabled(false));
box.addEventListener("mouseleave", hideTooltip);
box.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  if (steps[event.key]) { moved = true; cy.panBy({ x: steps[event.key][0], y: steps[event.key][1] }); }
  else if (event.key === "+" || event.key === "=") zoomBy(1.25);
  else if (event.key === "-") zoomBy(0.8);
  else if (event.key === "0") fitView();
  else if (event.key === "Escape") chooseNothing();
  else return;
  event.preventDefault();
});
byId("zoom-in").addEventListener("click", () => zoomBy(1.25));
byId("zoom-out").addEventListener("click", () => zoomBy(0.8));
byId("fit").addEventListener("click", fitView);
