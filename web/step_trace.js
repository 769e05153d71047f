// SPDX-License-Identifier: Apache-2.0
// One step of a job: when each op ran, on which task and device, what the step waited for last, and what took longest. Steps come
// from lines of a log (docs/operating.md), or from a file as Perfetto and TensorFlow's timeline have it.
import {bytes, card, fill, h, say} from './dom.js';
import {colourOf} from './plots.js';

const SVG = 'http://www.w3.org/2000/svg';
const MOST_OPS = 20000;
const MOST_FILE = 64 << 20;
const LANE = 20;
const HEAD = 22;

function s(tag, properties, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

// Microseconds as people read them.
export function micros(us) {
  if (us < 1000) return Math.round(us) + ' µs';
  return us < 1e6 ? +(us / 1000).toPrecision(3) + ' ms' : +(us / 1e6).toPrecision(3) + ' s';
}

// "/job:ps/replica:0/task:1/device:CPU:0" as "ps 1, CPU:0".
export function deviceName(device) {
  const parts = /\/job:([^/]+)(?:\/replica:\d+)?\/task:(\d+)(?:\/device:|\/)?(.*)$/.exec(device);
  return parts ? parts[1] + ' ' + parts[2] + (parts[3] ? ', ' + parts[3] : '') : device;
}

const isTime = value => Number.isFinite(value) && value >= 0;

// Sorted by their starts, from 0 on. What is no op is left out.
function stepOf(ops, left, title) {
  const good = ops.filter(op => isTime(op.start) && isTime(op.took) && typeof op.name === 'string').slice(0, MOST_OPS);
  if (!good.length) return undefined;
  const begin = good.reduce((least, op) => Math.min(least, op.start), Infinity);
  for (const op of good) {
    op.start -= begin;
    op.end = op.start + op.took;
  }
  return {title, left: left || 0, total: good.reduce((most, op) => Math.max(most, op.end), 0), ops: good.sort((a, b) => a.start - b.start)};
}

// The step that a line of a log tells, if it does.
export function stepIn(line) {
  const at = line.indexOf('weft-step {');
  if (at < 0) return undefined;
  try {
    let text = line.slice(at + 10);
    if (line.startsWith('{')) text = JSON.parse(line).msg.slice(10);  // a log of JSON objects
    const told = JSON.parse(text);
    const ops = told.ops.map(([device, start, took, name, op, inputs]) => ({device: String(told.devices[device] ?? device), start, took, name, op: String(op ?? ''), inputs}));
    for (const op of ops) op.inputs = (Array.isArray(op.inputs) ? op.inputs : []).map(i => ops[i]).filter(Boolean);
    return stepOf(ops, told.left, 'Step ' + Number(told.step));
  } catch {
    return undefined;  // cut off, or somebody else's
  }
}

// The step of a file: {"traceEvents": [...]}.
export function stepOfFile(text, title) {
  const events = JSON.parse(text).traceEvents;
  if (!Array.isArray(events)) throw new Error('it has no traceEvents');
  const names = new Map(events.filter(event => event?.ph === 'M' && event.name === 'process_name').map(event => [event.pid, String(event.args?.name ?? event.pid)]));
  const ops = events.filter(event => event?.ph === 'X').map(event => ({device: names.get(event.pid) ?? String(event.pid), start: event.ts, took: event.dur ?? 0,
    name: String(event.args?.name ?? event.name), op: String(event.args?.op ?? ''), inputs: Array.isArray(event.args?.inputs) ? event.args.inputs :
      Object.entries(event.args ?? {}).filter(([key]) => /^input\d+$/.test(key)).map(([, input]) => input)}));
  const byName = new Map(ops.map(op => [op.name, op]));
  for (const op of ops) op.inputs = op.inputs.map(name => byName.get(String(name).replace(/^\^|:\d+$/g, ''))).filter(Boolean);
  const step = stepOf(ops, 0, title);
  if (!step) throw new Error('it holds no op with a time');
  return step;
}

// What the end of the step waited for: from the op that ended last back to its latest input, or, where none is known, to what ran
// before it on its device.
export function criticalPath(step) {
  const path = [];
  const seen = new Set();
  let op = step.ops.reduce((last, each) => (each.end > last.end ? each : last), step.ops[0]);
  while (op && !seen.has(op)) {
    seen.add(op);
    path.unshift(op);
    // A receive waits from before its send began.
    const latest = (best, each) => (!seen.has(each) && each.end <= op.end && (!best || each.end > best.end) ? each : best);
    op = op.inputs.reduce(latest, undefined) ?? step.ops.reduce((best, each) => (each.device === op.device && each.end <= op.start ? latest(best, each) : best), undefined);
  }
  return path;
}

// Ops by what they are, those that took longest first.
export function longestOps(step) {
  const kinds = new Map();
  for (const op of step.ops) {
    const kind = kinds.get(op.op || op.name) ?? {name: op.op || op.name, count: 0, took: 0, longest: op};
    ++kind.count;
    kind.took += op.took;
    if (op.took > kind.longest.took) kind.longest = op;
    kinds.set(kind.name, kind);
  }
  return [...kinds.values()].sort((a, b) => b.took - a.took);
}

// Devices with their ops in lanes, none over another.
function lanesOf(step) {
  const devices = new Map();
  for (const op of step.ops) {
    if (!devices.has(op.device)) devices.set(op.device, []);
    const lanes = devices.get(op.device);
    const lane = lanes.find(each => each.at(-1).end <= op.start) ?? (lanes.length < 16 ? lanes[lanes.push([]) - 1] : lanes[15]);
    lane.push(op);
  }
  return [...devices].sort(([a], [b]) => a.localeCompare(b, undefined, {numeric: true}));
}

class Timeline {
  constructor(step) {
    Object.assign(this, {step, from: 0, to: step.total || 1, at: -1});
    this.path = new Set(criticalPath(step));
    this.colours = new Map(longestOps(step).map((kind, i) => [kind.name, i]));
    this.rows = lanesOf(step);
    this.tip = h('div', {class: 'tip', hidden: true});
    this.svg = s('svg', {class: 'timeline', role: 'img', tabindex: 0, 'aria-label': 'Timeline of ' + step.title + '. ' + step.ops.length + ' ops on ' +
      this.rows.length + ' devices in ' + micros(step.total) + '. Arrow keys go from op to op, plus and minus zoom.'});
    this.svg.addEventListener('pointermove', event => this.show(Number(event.target.dataset?.op ?? -1), event));
    this.svg.addEventListener('pointerleave', () => this.show(-1));
    this.svg.addEventListener('blur', () => this.show(-1));
    this.svg.addEventListener('keydown', event => this.walk(event));
    this.element = h('div', {class: 'plot'}, this.svg, this.tip);
    this.watch = new ResizeObserver(() => this.paint());
    this.watch.observe(this.element);
  }

  zoom(factor) {
    const op = this.step.ops[this.at];
    const middle = op ? (op.start + op.end) / 2 : (this.from + this.to) / 2;
    const half = Math.min(this.step.total || 1, Math.max(1, (this.to - this.from) * factor)) / 2;
    this.from = Math.max(0, Math.min(middle - half, (this.step.total || 1) - 2 * half));
    this.to = this.from + 2 * half;
    this.paint();
    say('from ' + micros(this.from) + ' to ' + micros(this.to));
  }

  paint() {
    const width = this.element.clientWidth;
    if (!width) return;
    const x = us => Math.min(width, Math.max(0, (us - this.from) / (this.to - this.from) * width));
    const drawn = [];
    let y = 0;
    const number = new Map(this.step.ops.map((op, i) => [op, i]));
    for (const [device, lanes] of this.rows) {
      drawn.push(s('text', {x: 0, y: y + 15, class: 'device'}, deviceName(device)));
      y += HEAD;
      for (const lane of lanes) {
        drawn.push(s('rect', {x: 0, y, width, height: LANE - 2, class: 'lane'}));
        let until = -1;
        for (const op of lane) {
          if (op.end < this.from || op.start > this.to) continue;
          const left = x(op.start);
          const wide = Math.max(1, x(op.end) - left);
          const isPath = this.path.has(op);
          // Of many in one pixel one is enough, but what counts is always there.
          if (left + wide <= until && !isPath) continue;
          until = left + wide;
          const i = number.get(op);
          drawn.push(s('rect', {x: left, y, width: wide, height: LANE - 2, fill: colourOf(this.colours.get(op.op || op.name) ?? 0), class: 'op' + (isPath ? ' path' : '') + (i === this.at ? ' at' : ''), 'data-op': i}));
          const words = op.name.split('/').at(-1);
          if (wide > 14 + 6.6 * words.length) drawn.push(s('text', {x: left + 5, y: y + 13, class: 'name', 'data-op': i}, words));
        }
        y += LANE;
      }
    }
    for (let i = 0; i <= 4; ++i) {
      const us = this.from + (this.to - this.from) * i / 4;
      drawn.push(s('text', {x: width * i / 4, y: y + 14, class: 'tick', 'text-anchor': i === 0 ? 'start' : i === 4 ? 'end' : 'middle'}, micros(us)));
    }
    y += HEAD;
    this.svg.setAttribute('viewBox', '0 0 ' + width + ' ' + y);
    this.svg.style.setProperty('height', y + 'px');
    this.svg.replaceChildren(...drawn);
  }

  words(op) {
    return op.name + (op.op ? ' (' + op.op + ')' : '') + ' on ' + deviceName(op.device) + ': ' + micros(op.took) + ', from ' + micros(op.start) + (this.path.has(op) ? ', on the critical path' : '');
  }

  show(i, event) {
    if (i !== this.at) {
      this.svg.querySelector('.at')?.classList.remove('at');
      this.svg.querySelector('rect[data-op="' + i + '"]')?.classList.add('at');
    }
    this.at = i;
    const op = this.step.ops[i];
    this.tip.hidden = !op;
    if (!op) return;
    this.tip.textContent = this.words(op);
    const box = this.element.getBoundingClientRect();
    const bar = this.svg.querySelector('rect[data-op="' + i + '"]')?.getBoundingClientRect();
    const left = (event ? event.clientX : bar?.left ?? box.left) - box.left + 12;
    const top = (event ? event.clientY : bar?.bottom ?? box.top) - box.top + 12;
    this.tip.style.left = Math.max(0, Math.min(left, box.width - this.tip.offsetWidth - 4)) + 'px';
    this.tip.style.top = top + 'px';
  }

  walk(event) {
    if (event.key === 'Escape') return this.show(-1);
    if (event.key === '+' || event.key === '-') return this.zoom(event.key === '+' ? 0.5 : 2);
    const go = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!go) return undefined;
    event.preventDefault();
    const count = this.step.ops.length;
    const next = (this.at + go + count) % count;
    const op = this.step.ops[next];
    if (op.end < this.from || op.start > this.to) {
      const half = (this.to - this.from) / 2;
      this.from = Math.max(0, Math.min(op.start - half, this.step.total - 2 * half));
      this.to = this.from + 2 * half;
      this.paint();
    }
    this.show(next);
    say(this.words(op));
    return undefined;
  }
}

function pathList(step) {
  const path = criticalPath(step);
  const long = [...path].sort((a, b) => b.took - a.took).slice(0, 12);
  const ran = path.reduce((sum, op) => sum + op.took, 0);
  return [h('p', {class: 'soft small'}, path.length + ' ops, ' + micros(ran) + ' of ' + micros(step.total) + '; the rest is waiting. The longest, in their order:'),
    h('ol', {class: 'steps'}, path.filter(op => long.includes(op)).map(op => h('li', {}, h('span', {class: 'wrap'}, op.name), h('span', {class: 'soft small'}, ' ' + deviceName(op.device) + ', ' + micros(op.took)))))];
}

function longestTable(step) {
  const all = step.ops.reduce((sum, op) => sum + op.took, 0) || 1;
  return h('div', {class: 'scroll'}, h('table', {class: 'wrapping'}, h('thead', {}, h('tr', {}, ['Op', 'Times', 'Took', 'Part', 'Longest'].map(title => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, longestOps(step).slice(0, 12).map(kind => h('tr', {}, h('th', {scope: 'row', class: 'wrap'}, kind.name), h('td', {class: 'num'}, kind.count), h('td', {class: 'num'}, micros(kind.took)),
      h('td', {class: 'num'}, Math.round(100 * kind.took / all) + ' %'), h('td', {class: 'wrap'}, kind.longest.name + ', ' + micros(kind.longest.took)))))));
}

// The steps that a log told, and those of files.
export class StepView {
  constructor() {
    this.steps = [];
    this.hint = h('div', {class: 'stack close'}, h('p', {class: 'soft'}, 'No step was traced yet. A task tells of one now and then if its container has'),
      h('pre', {class: 'text'}, h('code', {}, 'env: [{name: WEFT_SHOW_STEPS, value: "1"}]')),
      h('p', {class: 'soft'}, 'A file that TensorFlow\'s timeline or weft wrote (trace-100.json) can be opened here too.'));
    this.noLog = h('p', {class: 'problem', role: 'status', hidden: true});
    this.problem = h('p', {class: 'problem', role: 'alert', hidden: true});
    this.picker = h('select', {'aria-label': 'Step', on: {change: event => this.choose(Number(event.target.value))}});
    this.file = h('input', {type: 'file', style: {width: '19rem'}, accept: '.json,application/json', 'aria-label': 'Open a trace file', on: {change: () => this.open(this.file.files[0])}});
    this.body = h('div', {class: 'stack'});
    this.element = h('div', {class: 'stack'}, h('div', {class: 'row'}, this.picker, h('label', {class: 'row'}, h('span', {class: 'soft small'}, 'or a file'), this.file)), this.problem, this.noLog, this.hint, this.body);
    this.list();
  }

  take(step) {
    this.steps.push(step);
    if (this.steps.length > 20) this.steps.shift();
    // Who looks at one is not taken away from it.
    if (!this.shown) this.choose(this.steps.length - 1);
    else this.list();
  }

  // Why the log cannot be read, if so.
  tell(problem) {
    this.noLog.hidden = !problem;
    this.noLog.textContent = problem ?? '';
    this.hint.hidden = this.steps.length > 0 || Boolean(problem);
  }

  list() {
    this.picker.hidden = !this.steps.length;
    this.hint.hidden = this.steps.length > 0;
    fill(this.picker, this.steps.map((step, i) => h('option', {value: i, selected: step === this.shown}, step.title + ', ' + micros(step.total))));
  }

  choose(i) {
    this.shown = this.steps[i];
    this.list();
    const timeline = new Timeline(this.shown);
    const zoom = (words, factor) => h('button', {type: 'button', 'aria-label': words, on: {click: () => timeline.zoom(factor)}}, factor < 1 ? '+' : '−');
    fill(this.body, card('Timeline', [this.shown.left > 0 && h('p', {class: 'soft small'}, this.shown.left + ' short ops are left out.'), timeline.element], [zoom('Zoom in', 0.5), zoom('Zoom out', 2)]),
      h('div', {class: 'grid'}, card('Critical path', pathList(this.shown)), card('Longest ops', longestTable(this.shown))));
    timeline.paint();
  }

  async open(file) {
    if (!file) return;
    this.problem.hidden = true;
    try {
      if (file.size > MOST_FILE) throw new Error('it has ' + bytes(file.size) + '; ' + bytes(MOST_FILE) + ' are read');
      this.shown = undefined;
      this.take(stepOfFile(await file.text(), file.name));
    } catch (error) {
      this.problem.hidden = false;
      this.problem.textContent = file.name + ' is no trace of a step: ' + error.message;
    }
  }
}
