// SPDX-License-Identifier: Apache-2.0
// Pictures on canvases: points and lines over two axes, with a word for what is under the pointer or chosen with the arrow keys,
// and a description for those who do not see them.
import {h, number, say} from './dom.js';

const FONT = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
// Okabe and Ito's colours, told apart by almost everybody, a little darker or lighter where they meet the card.
const LIGHT = ['#0072b2', '#c2560a', '#00805f', '#a8437a', '#7a6a00', '#2f8fc4', '#5b4fc4', '#5f6b76'];
const DARK = ['#5bb4f0', '#f0a04b', '#39c79f', '#ef8fc0', '#e6d84a', '#9bd3f7', '#a79cff', '#a3b1be'];
// From bad to good.
const RAMP = {
  light: [[250, 205, 120], [120, 190, 140], [32, 140, 140], [38, 80, 140], [60, 24, 100]],
  dark: [[90, 60, 140], [60, 110, 180], [40, 165, 165], [140, 210, 120], [253, 231, 100]],
};

export const isDark = () => document.documentElement.dataset.theme === 'dark';
export const colourOf = i => (isDark() ? DARK : LIGHT)[i % 8];

export function ramp(part) {
  const stops = isDark() ? RAMP.dark : RAMP.light;
  const at = Math.min(1, Math.max(0, part)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  return 'rgb(' + stops[i].map((from, c) => Math.round(from + (at - i) * (stops[i + 1][c] - from))).join(' ') + ')';
}

function ticks(low, high, count) {
  const step0 = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(step0));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= step0) ?? step0;
  const list = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9 && list.length < 20; t += step) list.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return list;
}

function logTicks(low, high) {
  const list = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high) + 1e-9; ++p) {
    for (const m of [1, 2, 5]) {
      const t = m * 10 ** p;
      if (t >= low * 0.999 && t <= high * 1.001) list.push([t, m === 1]);
    }
  }
  const whole = list.filter(([, isPower]) => isPower);
  return (whole.length >= 2 ? whole : list).map(([t]) => t);
}

// A linear or logarithmic way from values to places.
export function scaleOf(low, high, isLog, isWhole) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0, 1];
  if (isLog && low <= 0) isLog = false;
  if (low === high) [low, high] = isLog ? [low / 2, high * 2] : [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const f = isLog ? Math.log : x => x;
  const [a, b] = [f(low), f(high)];
  return {low, high, place: value => (f(value) - a) / (b - a), ticks: count => (isLog ? logTicks(low, high) : ticks(low, high, count)).filter(t => !isWhole || Number.isInteger(t))};
}

export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// The middle of what there is: one bad trial must not press the rest into a line. Values beyond are drawn at the edge.
export function robustExtent(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length < 20) return extent(sorted);
  const at = part => sorted[Math.floor(part * (sorted.length - 1))];
  const room = 3 * (at(0.9) - at(0.1));
  return [Math.max(sorted[0], at(0.1) - room), Math.min(sorted.at(-1), at(0.9) + room)];
}

export class Plot {
  // `draw(context, width, height, style)` paints and returns the points that can be looked at: [{x, y, text, open?}].
  constructor(label, height, draw) {
    Object.assign(this, {label, height, draw});
    this.points = [];
    this.canvas = h('canvas', {role: 'img', tabindex: 0, 'aria-label': label, on: {
      pointermove: event => this.look(event.offsetX, event.offsetY),
      pointerleave: () => this.hide(),
      click: event => {
        this.look(event.offsetX, event.offsetY);
        this.points[this.at]?.open?.();
      },
      keydown: event => this.walk(event),
      blur: () => this.hide(),
    }});
    this.canvas.style.height = height + 'px';
    this.tip = h('div', {class: 'tip', hidden: true});
    this.element = h('div', {class: 'plot'}, this.canvas, this.tip);
    this.watch = new ResizeObserver(() => this.paint());
    this.watch.observe(this.element);
  }

  describe(text) {
    this.canvas.setAttribute('aria-label', this.label + '. ' + text);
  }

  paint() {
    const width = this.element.clientWidth;
    if (!width) return;
    const density = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = width * density;
    this.canvas.height = this.height * density;
    const context = this.canvas.getContext('2d');
    context.scale(density, density);
    context.font = FONT;
    const css = getComputedStyle(document.documentElement);
    const style = name => css.getPropertyValue('--' + name).trim();
    this.points = this.draw(context, width, this.height, style) ?? [];
  }

  look(x, y) {
    let best = 30 * 30;
    let found = -1;
    for (let i = 0; i < this.points.length; ++i) {
      const d = (this.points[i].x - x) ** 2 + (this.points[i].y - y) ** 2;
      if (d < best) [best, found] = [d, i];
    }
    this.show(found);
  }

  show(i) {
    this.at = i;
    const point = this.points[i];
    this.canvas.style.cursor = point?.open ? 'pointer' : '';
    if (!point) return this.hide();
    this.tip.textContent = point.text;
    this.tip.hidden = false;
    const left = Math.min(point.x + 12, this.element.clientWidth - this.tip.offsetWidth - 4);
    this.tip.style.left = Math.max(0, left) + 'px';
    this.tip.style.top = Math.max(0, Math.min(this.height - this.tip.offsetHeight, point.y + 12)) + 'px';
  }

  hide() {
    this.tip.hidden = true;
    this.at = -1;
  }

  walk(event) {
    if (event.key === 'Escape') return this.hide();
    if (event.key === 'Enter') return this.points[this.at]?.open?.();
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!step || !this.points.length) return;
    event.preventDefault();
    const order = this.points.map((p, i) => i).sort((a, b) => this.points[a].x - this.points[b].x);
    const where = order.indexOf(this.at);
    this.show(order[(where + step + order.length) % order.length]);
    say(this.points[this.at].text);
  }
}

const LEFT = 56;
const RIGHT = 12;
const TOP = 24;
const EDGE = 6;  // so that no point is cut in half
const BOTTOM = 38;

// The frame of a plot; gives ways from values to pixels.
export function axes(c, width, height, style, x, y, xName, yName) {
  const inner = {left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BOTTOM};
  const px = value => inner.left + EDGE + Math.min(1, Math.max(0, x.place(value))) * (inner.right - inner.left - 2 * EDGE);
  const py = value => inner.bottom - EDGE - Math.min(1, Math.max(0, y.place(value))) * (inner.bottom - inner.top - 2 * EDGE);
  c.strokeStyle = style('line');
  c.fillStyle = style('soft');
  c.lineWidth = 1;
  c.textBaseline = 'middle';
  c.textAlign = 'right';
  for (const t of y.ticks(Math.max(2, Math.floor(height / 42)))) {
    const at = Math.round(py(t)) + 0.5;
    c.beginPath();
    c.moveTo(inner.left, at);
    c.lineTo(inner.right, at);
    c.stroke();
    c.fillText(number(t), inner.left - 7, at);
  }
  c.textBaseline = 'top';
  const xs = x.ticks(Math.max(2, Math.floor(width / 95)));
  for (const t of xs) {
    c.textAlign = px(t) > inner.right - 14 ? 'right' : 'center';
    c.fillText(x.words?.(t) ?? number(t), px(t), inner.bottom + 6);
  }
  c.textAlign = 'center';
  c.fillText(xName, (inner.left + inner.right) / 2, height - 15);
  if (yName) {
    c.textAlign = 'left';
    c.textBaseline = 'top';
    c.fillStyle = style('text');
    c.font = '600 ' + FONT;
    c.fillText(yName, 4, 3);
    c.font = FONT;
  }
  return {px, py, inner};
}

export function dot(c, x, y, radius, fill, ring) {
  c.beginPath();
  c.arc(x, y, radius, 0, 7);
  c.fillStyle = fill;
  c.fill();
  if (!ring) return;
  c.strokeStyle = ring;
  c.lineWidth = 2;
  c.stroke();
}

// Lines of [x, y] points: [{name, points, colour, open?, width?}].
export function linesPlot(label, height, get, {xName, yName, isLog} = {}) {
  return new Plot(label, height, (c, width, tall, style) => {
    const lines = get();
    const xs = extent(lines.flatMap(line => line.points.map(p => p[0])));
    const ys = robustExtent(lines.flatMap(line => line.points.map(p => p[1])));
    const {px, py} = axes(c, width, tall, style, scaleOf(...xs), scaleOf(...ys, isLog?.()), xName ?? '', yName ?? '');
    const points = [];
    for (const line of lines) {
      c.strokeStyle = line.colour;
      c.globalAlpha = line.alpha ?? 1;
      c.lineWidth = line.width ?? 2;
      c.lineJoin = 'round';
      c.beginPath();
      line.points.forEach(([x, y], i) => i ? c.lineTo(px(x), py(y)) : c.moveTo(px(x), py(y)));
      c.stroke();
      if (line.points.length === 1) dot(c, px(line.points[0][0]), py(line.points[0][1]), 3, line.colour);
      const every = Math.ceil(line.points.length * lines.length / 4000);
      line.points.forEach(([x, y], i) => {
        if (i % every === 0 || i + 1 === line.points.length)
          points.push({x: px(x), y: py(y), text: line.name + '\n' + (xName ?? 'x') + ' ' + number(x) + ': ' + number(y), open: line.open});
      });
    }
    c.globalAlpha = 1;
    return points;
  });
}

// Points [{x, y, colour, text, open, ring, small}] over `frame()`: {x, y: scales, xName, yName, under?(c, px, py)}.
export function pointsPlot(label, height, get, frame) {
  return new Plot(label, height, (c, width, tall, style) => {
    const {x, y, xName, yName, under, over} = frame();
    const {px, py, inner} = axes(c, width, tall, style, x, y, xName, yName);
    under?.(c, px, py, style, inner);
    const all = get(style);
    const radius = all.length > 3000 ? 1.8 : all.length > 400 ? 2.6 : 4;
    const points = [];
    c.globalAlpha = all.length > 400 ? 0.7 : 0.9;
    for (const point of all) {
      const [at, up] = [px(point.x), py(point.y)];
      dot(c, at, up, point.radius ?? radius, point.colour, point.ring);
      points.push({x: at, y: up, text: point.text, open: point.open});
    }
    c.globalAlpha = 1;
    over?.(c, px, py, style, inner);
    return points;
  });
}

const MOST_A_FRAME = 1500;  // lines that are drawn before the browser may do something else

// One line a trial over an axis a parameter: `axes` of axisOf with `get(trial)`, `lines` [{trial, colour, text, open}] with the
// best last. `brush(axis, low, high)` when somebody drags along an axis; [low, high] undefined: the whole.
export class ParallelPlot {
  constructor(label, get, brush) {
    Object.assign(this, {get, brush});
    this.plot = new Plot(label, 400, (c, width, height, style) => this.draw(c, width, height, style));
    this.element = h('div', {class: 'beyond'}, this.plot.element);
    const canvas = this.plot.canvas;
    canvas.style.touchAction = 'pan-x pan-y';
    canvas.addEventListener('pointerdown', event => {
      const axis = this.axisAt(event.offsetX);
      if (axis) this.drag = {axis, from: event.offsetY};
    });
    canvas.addEventListener('pointerup', event => {
      if (!this.drag) return;
      const {axis, from} = this.drag;
      this.drag = undefined;
      const part = y => Math.min(1, Math.max(0, (this.bottom - y) / (this.bottom - this.top)));
      const [a, b] = [part(from), part(event.offsetY)].sort((p, q) => p - q);
      if (b - a < 0.02) return;
      this.brush(axis, axis.label(a), axis.label(b), a, b);
    });
  }

  paint() {
    // Names of axes need room, which a phone has not got: it is moved along.
    this.plot.element.style.minWidth = 84 * this.get().axes.length + 'px';
    this.plot.paint();
  }

  axisAt(x) {
    const i = this.places?.findIndex(place => Math.abs(place - x) < 22) ?? -1;
    return i < 0 ? undefined : this.shown[i];
  }

  draw(c, width, height, style) {
    const {axes: list, lines} = this.get();
    this.shown = list;
    const [left, right] = [44, width - 60];
    this.top = 34;
    this.bottom = height - 26;
    this.places = list.map((_, i) => list.length < 2 ? left : left + i * (right - left) / (list.length - 1));
    const up = part => this.bottom - part * (this.bottom - this.top);
    const frame = () => {
      list.forEach((axis, i) => {
        const x = this.places[i];
        c.strokeStyle = style('line-strong');
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(x, this.top);
        c.lineTo(x, this.bottom);
        c.stroke();
        c.textAlign = i === 0 ? 'left' : i + 1 === list.length ? 'right' : 'center';
        c.textBaseline = 'bottom';
        c.fillStyle = style('text');
        c.font = '600 ' + FONT;
        c.fillText(axis.name, i === 0 ? x - 38 : i + 1 === list.length ? x + 54 : x, this.top - 13, (right - left) / list.length + 30);
        c.font = FONT;
        c.fillStyle = style('soft');
        c.textAlign = 'left';
        c.textBaseline = 'middle';
        const marks = axis.choices ? axis.choices.map(choice => [axis.place(choice), choice])
          : axis.isWhole && !axis.isLog && axis.high - axis.low <= 10 ? Array.from({length: axis.high - axis.low + 1}, (_, n) => [axis.place(axis.low + n), String(axis.low + n)])
            : [0, 0.5, 1].map(part => [part, number(axis.label(part))]);
        for (const [part, text] of marks.slice(0, 14)) {
          c.lineWidth = 4;
          c.strokeStyle = style('card');
          c.strokeText(text, x + 5, up(part), 90);
          c.fillText(text, x + 5, up(part), 90);
        }
      });
    };
    const mine = this.pass = {};
    const points = [];
    const alpha = lines.length > 2000 ? 0.12 : lines.length > 300 ? 0.35 : 0.75;
    let done = 0;
    const some = () => {
      if (this.pass !== mine) return;
      c.lineWidth = 1.3;
      const end = Math.min(lines.length, done + MOST_A_FRAME);
      for (; done < end; ++done) {
        const line = lines[done];
        c.globalAlpha = line.isStrong ? 1 : alpha;
        c.lineWidth = line.isStrong ? 2.6 : 1.3;
        c.strokeStyle = line.colour;
        c.beginPath();
        let isOpen = false;
        list.forEach((axis, i) => {
          const part = axis.place(axis.get(line.trial));
          if (part === undefined) {
            isOpen = false;
            return;
          }
          const y = up(Math.min(1, Math.max(0, part)));
          if (isOpen) c.lineTo(this.places[i], y);
          else c.moveTo(this.places[i], y);
          isOpen = true;
          if (lines.length <= 3000) points.push({x: this.places[i], y, text: line.text, open: line.open});
        });
        c.stroke();
      }
      c.globalAlpha = 1;
      frame();
      if (done < lines.length) requestAnimationFrame(some);
    };
    some();
    return points;
  }
}
