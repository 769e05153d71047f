// SPDX-License-Identifier: Apache-2.0
// What a pod prints: the text as it comes, and the curves of the numbers in it.
import {h} from './dom.js';
import {stream} from './connection.js';
import {colourOf, linesPlot} from './plots.js';
import {stepIn} from './step_trace.js';

const MOST_LINES = 5000;
const MOST_POINTS = 20000;
const WAITS_TO_START = 400;  // what an API server answers of a container that has not begun
const ASK_AGAIN_MS = 1000;
const STEP = /\b(?:global_?step|step|iteration|iter)[ =:]+(\d+)/i;
const EPOCH = /\bepoch[ =:]+(\d+)/i;
const NAMED = /([A-Za-z][A-Za-z0-9_./-]*)\s*(?:[=:]\s*|\s)([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])/g;
const NO_METRIC = /^(step|steps|global_?step|epoch|epochs|iter|iteration|eta|took|in|of|to|at|time|port|pid|task|worker|ps|pod|trial|line|v|version|seconds?|ms|s|examples\/sec|sec)$/i;

// "step 120/600  loss 0.25", "accuracy=0.93", Keras's " 12/469 - 3s - loss: 0.5": {step, epoch, values: [[name, number]]}.
export function numbersIn(line) {
  const step = STEP.exec(line)?.[1];
  const epoch = EPOCH.exec(line)?.[1];
  const values = [];
  for (const [, name, text] of line.matchAll(NAMED)) {
    if (!NO_METRIC.test(name) && name.length <= 40) values.push([name, Number(text)]);
  }
  return {step: step && Number(step), epoch: epoch && Number(epoch), values};
}

export class Curves {
  constructor() {
    this.series = new Map();
    this.count = 0;
  }

  take(line) {
    const {step, epoch, values} = numbersIn(line);
    if (!values.length || this.count > MOST_POINTS) return false;
    for (const [name, value] of values) {
      if (!this.series.has(name)) {
        if (this.series.size >= 12) continue;
        this.series.set(name, []);
      }
      const points = this.series.get(name);
      points.push([step ?? epoch ?? points.length + 1, value]);
      ++this.count;
    }
    return true;
  }

  // Those that go on: a number that was printed once is no curve.
  names() {
    return [...this.series].filter(([, points]) => points.length > 1).map(([name]) => name);
  }
}

// The log of one container, followed. `heard()` when numbers came or `problem`, why there is no log, changes; `traced(step)` for each step
// that it tells. stop() when it is not looked at any more. `isPrevious`: that of the container before its last restart.
export class LogView {
  constructor(pod, container, heard, traced, isPrevious) {
    this.curves = new Curves();
    this.lines = [];
    this.rest = '';
    this.filter = '';
    this.text = h('pre', {class: 'log', tabindex: 0, role: 'log', 'aria-label': 'Log of ' + pod.name});
    this.state = h('span', {class: 'soft small', role: 'status'}, 'connecting…');
    this.element = h('div', {class: 'stack close'},
      h('div', {class: 'row'}, h('input', {type: 'search', placeholder: 'only lines with…', 'aria-label': 'Show only lines with', on: {input: event => {
        this.filter = event.target.value.toLowerCase();
        this.show(true);
      }}}), this.state), this.text);
    this.abort = new AbortController();
    this.heard = heard;
    this.traced = traced;
    this.follow({namespace: pod.namespace, pod: pod.name, container, ...(isPrevious ? {previous: '1'} : {follow: '1'}), tail: MOST_LINES});
  }

  async follow(query) {
    for (;;) {
      try {
        await stream('/api/log', query, this.abort.signal, piece => this.take(piece));
        return this.end('the log has ended');
      } catch (error) {
        if (this.abort.signal.aborted) return undefined;
        this.problem = error.message;
        this.heard?.();
        if (error.code !== WAITS_TO_START) return this.end(error.message);
        this.state.textContent = error.message;
      }
      await new Promise(resolve => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }

  stop() {
    this.abort.abort();
    cancelAnimationFrame(this.frame);
  }

  end(words) {
    const problem = this.problem;
    if (this.rest) this.take('\n');
    this.problem = problem;
    this.state.textContent = words;
  }

  take(piece) {
    const lines = (this.rest + piece).split('\n');
    this.rest = lines.pop();
    let isNews = this.problem !== undefined;
    this.problem = undefined;
    for (const line of lines) {
      const step = stepIn(line);
      if (step) this.traced?.(step);
      else isNews = this.curves.take(line) || isNews;
      this.lines.push(step ? step.title + ' was traced: ' + step.ops.length + ' ops' : line);
    }
    if (this.lines.length > MOST_LINES) this.lines.splice(0, this.lines.length - MOST_LINES);
    this.state.textContent = 'live';
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.show(false);
      if (isNews) this.heard?.();
    });
  }

  show(isOther) {
    const isAtEnd = isOther || this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 30;
    const shown = this.filter ? this.lines.filter(line => line.toLowerCase().includes(this.filter)) : this.lines;
    this.text.textContent = shown.join('\n');
    if (isAtEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}

// A small plot for each number that goes on.
export class CurvePlots {
  constructor() {
    this.element = h('div', {class: 'small-plots'});
    this.plots = new Map();
  }

  update(curves) {
    curves.names().forEach((name, i) => {
      const points = () => curves.series.get(name) ?? [];
      if (!this.plots.has(name)) {
        const plot = linesPlot(name, 210, () => [{name, points: points(), colour: colourOf(i)}], {xName: 'step', yName: name});
        this.plots.set(name, plot);
        this.element.append(plot.element);
      }
      const plot = this.plots.get(name);
      plot.describe('The last of ' + points().length + ' values is ' + points().at(-1)?.[1]);
      plot.paint();
    });
  }
}
