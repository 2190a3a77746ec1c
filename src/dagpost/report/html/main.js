// Everything is in place: draw, and draw again when the size, the colours or the paper change.
function redraw() {
  cy.style(drawing());
  drawHeat();
}

explain();
makeViews();
showView();
makeTables();
sized();
makeHeat();

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { sized(); drawHeat(); }, 120);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

function ontoPaper() {
  document.documentElement.dataset.print = "";
  redraw();
  byId("graph-print").src = cy.png({ full: true, scale: Math.min(2, 2400 / box.clientWidth), bg: "#ffffff" });
}

addEventListener("beforeprint", ontoPaper);
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.print;
  redraw();
});
