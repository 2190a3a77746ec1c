// A few numbers beside the pointer.
const tooltip = byId("tooltip");

function hint(x, y, title, lines) {
  tooltip.replaceChildren(element("b", {}, title), ...lines.map((line) => element("div", {}, line)));
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
  tooltip.style.left = Math.max(4, left) + "px";
  tooltip.style.top = Math.max(4, top) + "px";
}

function unhint() {
  tooltip.hidden = true;
}

function edgeLines(i, j) {
  const lines = ["this direction " + three(edge(i, j)), "the other direction " + three(edge(j, i)),
    "either way " + three(edge(i, j) + edge(j, i))];
  const found = effect(i, j);
  if (found) lines.push("effect " + interval(found));
  if (known(i, j)) lines.push(known(i, j));
  return lines;
}

function nodeLines(j) {
  const likely = (of) => of.filter(([, p]) => p >= 0.05).slice(0, 4).map(([k, p]) => names[k] + " " + three(p)).join(", ");
  return ["causes: " + (likely(causesOf(j)) || "none likely"), "effects: " + (likely(effectsOf(j)) || "none likely")];
}

const others = (j) => names.map((_, k) => k).filter((k) => k !== j);
const causesOf = (j) => others(j).map((k) => [k, edge(k, j)]).sort((a, b) => b[1] - a[1]);
const effectsOf = (j) => others(j).map((k) => [k, edge(j, k)]).sort((a, b) => b[1] - a[1]);
addEventListener("keydown", (event) => event.key === "Escape" && unhint());
