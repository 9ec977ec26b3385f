// A BD's walk over its memory: which element moves when.

const WALK_MOST = 4096; // elements that are drawn
const PADDED = -1;

// The first `most` elements in the order in which they move, as places in the memory; PADDED for padding.
function walkOrder(bd, most = WALK_MOST) {
  const dims = bd.sizes.length ? bd.sizes : [bd.length], strides = bd.sizes.length ? bd.strides : [1];
  const pads = dims.map((_, dim) => bd.pads[dim] || [0, 0]);
  const wide = dims.map((size, dim) => size + pads[dim][0] + pads[dim][1]);
  const total = Math.min(walkLength(bd), most), order = [];
  for (let number = 0; number < total; number++) {
    let rest = number, place = bd.offset, inside = true;
    for (let dim = dims.length - 1; dim >= 0; dim--) {
      const step = (dim ? rest % wide[dim] : rest) - pads[dim][0];
      inside = inside && step >= 0 && (step < dims[dim] || (!dim && !pads[0][1]));
      place += step * strides[dim];
      rest = Math.floor(rest / wide[dim]);
    }
    order.push(inside ? place : PADDED);
  }
  return order;
}

const walkLength = (bd) => Math.max(bd.length, bd.sizes.length && !bd.pads.length ? bd.sizes.reduce((all, size) => all * size, 1) : 0);

// Elements in a row of the drawing: the memref's last dimension, else the innermost stride that leaves a run.
function rowLength(bd) {
  if (bd.shape.length > 1) return bd.shape[bd.shape.length - 1];
  let run = 1;
  for (let dim = bd.sizes.length - 1; dim >= 0; dim--) {
    if (bd.sizes[dim] === 1) continue;
    if (bd.strides[dim] > run) return bd.strides[dim];
    if (bd.strides[dim] === run) run *= bd.sizes[dim];
  }
  return Math.min(64, Math.max(1, bd.length));
}

let walk = null;
function stopWalk() {
  if (walk && walk.timer) cancelAnimationFrame(walk.timer);
  walk = null;
}

function walkOf(bd) {
  const order = walkOrder(bd), all = walkLength(bd);
  const canvas = element("canvas", { id: "walk", height: 150, "aria-label": "The elements in the order in which they move" });
  const slider = element("input", { type: "range", id: "walk-at", min: 0, max: order.length, value: order.length, "aria-label": "Elements moved" });
  const row = element("input", { type: "number", id: "walk-row", min: 1, max: 1 << 20, value: rowLength(bd), "aria-label": "Elements in a row" });
  const button = element("button", { id: "walk-play" }, "▶ Walk"), told = element("span", { id: "walk-told", class: "faint" });
  walk = { bd, order, canvas, slider, row, told, button, timer: 0 };
  slider.addEventListener("input", () => { pauseWalk(); drawWalk(); });
  row.addEventListener("input", drawWalk);
  button.addEventListener("click", () => (walk.timer ? pauseWalk() : playWalk()));
  requestAnimationFrame(drawWalk);
  const cut = order.length < all ? fact(`the first ${order.length} of ${all} elements are drawn`) : null;
  return [element("h3", {}, "Walk"), element("div", { id: "walk-tools" }, button, slider, element("label", {}, "row of ", row)), canvas, told, cut].filter(Boolean);
}

function pauseWalk() {
  cancelAnimationFrame(walk.timer);
  walk.timer = 0;
  walk.button.textContent = "▶ Walk";
}

function playWalk() {
  const step = Math.max(1, Math.round(walk.order.length / 400)), mine = walk;
  if (+walk.slider.value >= walk.order.length) walk.slider.value = 0;
  walk.button.textContent = "❚❚ Pause";
  const frame = () => {
    if (walk !== mine) return;
    walk.slider.value = +walk.slider.value + step;
    drawWalk();
    if (+walk.slider.value >= walk.order.length) pauseWalk();
    else walk.timer = requestAnimationFrame(frame);
  };
  walk.timer = requestAnimationFrame(frame);
}

function drawWalk() {
  if (!walk) return;
  const { order, canvas, slider, told } = walk, count = +slider.value, width = Math.max(1, +walk.row.value || 1);
  const real = order.filter((place) => place !== PADDED);
  const least = (values) => values.reduce((one, other) => Math.min(one, other), Infinity), most = (values) => values.reduce((one, other) => Math.max(one, other), 0);
  const columns = real.map((place) => place % width), rows = real.map((place) => Math.floor(place / width));
  const [left, top] = real.length ? [least(columns), least(rows)] : [0, 0];
  const [across, down] = real.length ? [most(columns) - left + 1, most(rows) - top + 1] : [1, 1];
  const dense = window.devicePixelRatio || 1, room = [canvas.clientWidth || 400, 150];
  canvas.width = room[0] * dense; canvas.height = room[1] * dense;
  const pen = canvas.getContext("2d"), cell = [Math.min(24, room[0] / across), Math.min(24, room[1] / down)];
  pen.scale(dense, dense);
  order.slice(0, count).forEach((place, number) => {
    if (place === PADDED) return;
    pen.fillStyle = `hsl(${220 - (220 * number) / order.length} 70% 52%)`;
    pen.fillRect(((place % width) - left) * cell[0], (Math.floor(place / width) - top) * cell[1], Math.max(1, cell[0] - (cell[0] > 3)), Math.max(1, cell[1] - (cell[1] > 3)));
  });
  const last = count ? order[count - 1] : null;
  const now = last === null ? "none yet" : last === PADDED ? "padding" : `element ${last} (row ${Math.floor(last / width)}, column ${last % width})`;
  told.textContent = `${count} of ${order.length} moved: ${now}; drawn: rows ${top} to ${top + down - 1}, columns ${left} to ${left + across - 1}; first blue, last red`;
}
