// Bends of the edges around nodes in their way.
const BENDS = [0, 36, -36, 72, -72, 110, -110, 150, -150];
const CLEAR = 6, SAMPLES = 24;

// Number of points of the curve from i to j that lie in other nodes. Cytoscape puts the control point at this distance
// from the middle, to the side (-dy, dx); the curve goes half as far.
function countHits(i, j, bend) {
  const [x0, y0, x1, y1] = [places.x[i], places.y[i], places.x[j], places.y[j]];
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const cx = (x0 + x1) / 2 - (bend * (y1 - y0)) / length, cy_ = (y0 + y1) / 2 + (bend * (x1 - x0)) / length;
  const left = Math.min(x0, x1, cx), right = Math.max(x0, x1, cx), top = Math.min(y0, y1, cy_), low = Math.max(y0, y1, cy_);
  let hits = 0;
  for (let k = 0; k < allNames.length; k++) {
    const wide = places.widths[k] / 2 + CLEAR, high = 15 + CLEAR, x = places.x[k], y = places.y[k];
    if (k === i || k === j || x + wide < left || x - wide > right || y + high < top || y - high > low) continue;
    for (let s = 1; s < SAMPLES; s++) {
      const t = s / SAMPLES, a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
      if (Math.abs(a * x0 + b * cx + c * x1 - x) < wide && Math.abs(a * y0 + b * cy_ + c * y1 - y) < high) hits++;
    }
  }
  return hits;
}

function bendOf(i, j) {
  let best = 0, fewest = Infinity;
  for (const bend of BENDS) {
    const hits = countHits(i, j, bend);
    if (hits < fewest) [best, fewest] = [bend, hits];
    if (hits === 0) break;
  }
  return best;
}
