// Draw the page, and redraw it when the size or the colour scheme changes or it is printed.
function redraw() {
  cy.style(graphStyle());
  drawHeat();
}

explain();
makeViews();
makeConditions();
showView();
makeTables();
resizeGraph();
makeHeat();
makeExports();

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { resizeGraph(); drawHeat(); }, 120);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

function preparePrint() {
  document.documentElement.dataset.print = "";
  redraw();
  byId("graph-print").src = cy.png({ full: true, scale: Math.min(2, 2400 / box.clientWidth), bg: "#ffffff" });
}

addEventListener("beforeprint", preparePrint);
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.print;
  redraw();
});
