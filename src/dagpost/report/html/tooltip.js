// Tooltip with a few numbers beside the pointer.
const tooltip = byId("tooltip");

function showTooltip(x, y, title, lines) {
  tooltip.replaceChildren(element("b", {}, title), ...lines.map((line) => element("div", {}, line)));
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
  tooltip.style.left = Math.max(4, left) + "px";
  tooltip.style.top = Math.max(4, top) + "px";
}

function hideTooltip() {
  tooltip.hidden = true;
}

function edgeLines(i, j) {
  const lines = ["adjacent " + fixed3(adjacency(i, j)), arrow(i, j) + ": " + fixed3(edge(i, j)),
    arrow(j, i) + ": " + fixed3(edge(j, i))];
  if (signOf(i, j)) lines.push(signName + ": " + SIGNS[signOf(i, j)].join(" "));
  const row = effect(i, j);
  if (row) lines.push("effect of " + names[i] + " on " + names[j] + ": " + signed(row[5]) + " given a path");
  for (const [a, b] of [[i, j], [j, i]]) if (known(a, b)) lines.push(arrow(a, b) + " is " + known(a, b));
  return lines;
}

function nodeLines(j) {
  const likely = (neighbours) => neighbours.filter(([, p]) => p >= 0.05).slice(0, 4)
    .map(([k, p]) => names[k] + " " + fixed3(p)).join(", ");
  return ["causes: " + (likely(causesOf(j)) || "none likely"), "effects: " + (likely(effectsOf(j)) || "none likely")];
}

const others = (j) => names.map((_, k) => k).filter((k) => k !== j);
const causesOf = (j) => others(j).map((k) => [k, edge(k, j)]).sort((a, b) => b[1] - a[1]);
const effectsOf = (j) => others(j).map((k) => [k, edge(j, k)]).sort((a, b) => b[1] - a[1]);
addEventListener("keydown", (event) => event.key === "Escape" && hideTooltip());
