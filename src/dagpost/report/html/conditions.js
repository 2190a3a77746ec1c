// Conditions: nodes d, d + 1, … of the graph, with edges to the variables whose mechanism they probably change.
const conditions = content.conditions || { names: [], labels: [], x: [], y: [], widths: [], targets: [] };
const allNames = [...names, ...conditions.names], allLabels = [...labels, ...conditions.labels];
const places = Object.fromEntries(["x", "y", "widths"].map((key) => [key, [...content[key], ...conditions[key]]]));
const CONSENSUS = 0.5; // least probability of the targets that are drawn with a consensus graph or a class
const conditionSwitch = byId("show-conditions");

const isCondition = (i) => i >= d;
const changes = (i, j) => conditions.targets[(i - d) * d + j] / UNIT;
const strength = (i, j) => (isCondition(i) ? changes(i, j) : adjacency(i, j));
const kindOf = (i, j) => (isCondition(i) ? "target" : signOf(i, j));
const conditionsOf = (j) =>
  conditions.names.map((_, k) => [d + k, changes(d + k, j)]).sort((a, b) => b[1] - a[1]);
const targetsOf = (i) => names.map((_, j) => [j, changes(i, j)]).sort((a, b) => b[1] - a[1]);

function shownTargets(threshold) {
  if (!conditionSwitch.checked) return [];
  return conditions.names.flatMap((_, k) => names.map((_, j) => ({ i: d + k, j, open: false })))
    .filter(({ i, j }) => changes(i, j) >= threshold - 0.5 / UNIT);
}

function conditionLines(i) {
  const likely = targetsOf(i).filter(([, p]) => p >= 0.05).slice(0, 4).map(([j, p]) => names[j] + " " + fixed3(p));
  return ["condition", "changes: " + (likely.join(", ") || "nothing likely")];
}

function conditionDetails(i) {
  const likely = targetsOf(i).filter(([, p]) => p >= 0.01);
  fillDetails(allNames[i], [element("h4", {}, "Condition: probability that it changes the mechanism of"),
    likely.length ? pairsTable(likely.map(([j, p]) => [names[j], fixed3(p)]))
      : element("p", {}, "none with probability 0.01 or more")]);
}

function makeConditions() {
  byId("conditions-label").hidden = !conditions.names.length;
  conditionSwitch.addEventListener("change", showView);
}
