// SPDX-License-Identifier: Apache-2.0
// What trials add up to: the value that counts, the best so far, which are beaten by none, which parameter matters, and which
// trials a filter leaves.

// The value of a metric that counts, by the experiment's strategies.
export function metricOf(experiment, trial, name) {
  const values = trial.metrics?.[name];
  if (!values) return undefined;
  const objective = experiment?.objective ?? {};
  const strategy = (objective.metricStrategies ?? []).find(each => each.name === name)?.value;
  const usual = name !== objective.objectiveMetricName ? 'latest' : isMaximized(experiment) ? 'max' : 'min';
  return values[strategy ?? usual];
}

export const isMaximized = experiment => experiment?.objective?.type === 'maximize';
export const objectiveName = experiment => experiment?.objective?.objectiveMetricName ?? '';
export const metricNames = experiment => [objectiveName(experiment), ...(experiment?.objective?.additionalMetricNames ?? [])].filter(Boolean);

// By how much a trial breaks what the objective wants kept; 0: not at all.
export function violation(experiment, trial) {
  let sum = 0;
  for (const {metricName, min, max} of experiment?.objective?.constraints ?? []) {
    const value = metricOf(experiment, trial, metricName);
    if (value === undefined) return Infinity;
    sum += Math.max(0, (min ?? -Infinity) - value, value - (max ?? Infinity));
  }
  return sum;
}

// Of trials in their order: [trial, value, best so far].
export function history(experiment, trials) {
  const isBetter = isMaximized(experiment) ? (a, b) => a > b : (a, b) => a < b;
  let best;
  return trials.filter(trial => trial.value !== undefined).sort((a, b) => a.order - b.order).map(trial => {
    if (!trial.violation && (best === undefined || isBetter(trial.value, best))) best = trial.value;
    return {trial, value: trial.value, best};
  });
}

// Those that no other is as good as in everything and better in something. `signs`: 1 where less is better, else -1.
export function front(points, signs) {
  const sorted = [...points].sort((a, b) => signs[0] * (a.x - b.x) || signs[1] * (a.y - b.y));
  const kept = [];
  let best = Infinity;
  for (const point of sorted) {
    if (signs[1] * point.y >= best) continue;
    best = signs[1] * point.y;
    kept.push(point);
  }
  return kept;
}

// The same numbers in the same order each time.
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
}

const TREES = 24;
const DEPTH = 9;
const LEAF = 3;
const MOST = 800;  // trials that are looked at

// A tree over rows of numbers from 0 to 1: [axis, threshold, left, right], or a value.
function grow(points, depth, random) {
  const mean = points.reduce((sum, p) => sum + p.y, 0) / points.length;
  if (depth === 0 || points.length < 2 * LEAF) return mean;
  const width = points[0].x.length;
  let best;
  for (let tried = 0; tried < Math.max(2, Math.ceil(width * 0.7)); ++tried) {
    const axis = Math.floor(random() * width);
    const sorted = [...points].sort((a, b) => a.x[axis] - b.x[axis]);
    let sum = 0;
    const total = mean * points.length;
    for (let i = 1; i < sorted.length; ++i) {
      sum += sorted[i - 1].y;
      if (i < LEAF || sorted.length - i < LEAF || sorted[i].x[axis] === sorted[i - 1].x[axis]) continue;
      const gain = sum * sum / i + (total - sum) ** 2 / (sorted.length - i);
      if (!best || gain > best.gain) best = {gain, axis, at: (sorted[i].x[axis] + sorted[i - 1].x[axis]) / 2};
    }
  }
  if (!best) return mean;
  const left = points.filter(p => p.x[best.axis] <= best.at);
  const right = points.filter(p => p.x[best.axis] > best.at);
  return [best.axis, best.at, grow(left, depth - 1, random), grow(right, depth - 1, random)];
}

function predict(tree, x) {
  while (Array.isArray(tree)) tree = x[tree[0]] <= tree[1] ? tree[2] : tree[3];
  return tree;
}

// How much of the objective's variance each parameter explains alone, as fANOVA asks it of a forest of regression trees
// (Hutter, Hoos and Leyton-Brown 2014): [{name, part}], the largest first, parts summing to 1. Empty before ten trials.
export function importance(axes, trials) {
  let done = trials.filter(trial => Number.isFinite(trial.value));
  if (done.length < 10 || !axes.length) return [];
  const random = generator(7);
  if (done.length > MOST) done = done.sort((a, b) => a.order - b.order).filter((_, i) => i % Math.ceil(done.length / MOST) === 0);
  // By rank: one bad outlier does not hide the rest.
  const ranks = new Map([...done].sort((a, b) => a.value - b.value).map((trial, i) => [trial, i / done.length]));
  const points = done.map(trial => ({x: axes.map(axis => axis.place(trial.values[axis.name]) ?? 0.5), y: ranks.get(trial)}));
  const forest = Array.from({length: TREES}, () => grow(points.map(() => points[Math.floor(random() * points.length)]), DEPTH, random));
  const sample = points.filter((_, i) => i % Math.ceil(points.length / 60) === 0);
  const parts = axes.map((axis, a) => {
    const steps = axis.choices ? axis.choices.map((_, i) => axis.choices.length < 2 ? 0.5 : i / (axis.choices.length - 1)) : Array.from({length: 12}, (_, i) => i / 11);
    const means = steps.map(step => {
      let sum = 0;
      for (const {x} of sample) {
        const moved = [...x];
        moved[a] = step;
        for (const tree of forest) sum += predict(tree, moved);
      }
      return sum / (sample.length * TREES);
    });
    const mean = means.reduce((sum, m) => sum + m, 0) / means.length;
    return {name: axis.name, part: means.reduce((sum, m) => sum + (m - mean) ** 2, 0) / means.length};
  });
  const all = parts.reduce((sum, each) => sum + each.part, 0);
  return parts.map(({name, part}) => ({name, part: all > 0 ? part / all : 0})).sort((a, b) => b.part - a.part);
}

// The axis of a parameter or a metric: `place(value)` is from 0 to 1, `label(part)` the value there.
// `type` is that of a parameter, if it is one.
export function axisOf(name, values, space, type) {
  const numbers = values.filter(value => typeof value === 'number' && Number.isFinite(value));
  const isText = values.some(value => typeof value === 'string') || space?.list;
  if (isText) {
    const choices = [...new Set([...(space?.list ?? []).map(String), ...values.filter(v => v !== undefined).map(String)])];
    const places = new Map(choices.map((choice, i) => [choice, choices.length < 2 ? 0.5 : i / (choices.length - 1)]));
    return {name, choices, place: value => places.get(String(value)), label: part => choices[Math.round(part * (choices.length - 1))]};
  }
  let low = space?.min !== undefined ? Number(space.min) : Math.min(...bounds(numbers));
  let high = space?.max !== undefined ? Number(space.max) : Math.max(...bounds(numbers));
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0, 1];
  const isLog = /log/i.test(space?.distribution ?? '') && low > 0;
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const isWhole = type === 'int';
  const scale = isLog ? Math.log : x => x;
  const [a, b] = [scale(low), scale(high)];
  return {
    name, low, high, isLog, isWhole,
    place: value => typeof value === 'number' && Number.isFinite(value) ? (scale(value) - a) / (b - a) : undefined,
    label: part => isLog ? Math.exp(a + part * (b - a)) : a + part * (b - a),
  };
}

// Without spreading thousands of arguments.
function bounds(numbers) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of numbers) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

const TERM = /^([^<>=~!]+)(<=|>=|!=|=|<|>|~)(.*)$/;

// "lr<0.01 optimizer=adam running": all hold. A word alone stands anywhere in the name, state or values. Gives a function of a
// trial; `field(trial, name)` knows more names than the trial's own.
// What the comparisons of a filter are about.
export const namesIn = text => text.split(/\s+/).map(word => TERM.exec(word)?.[1]).filter(Boolean);

export function filterOf(text, field) {
  const terms = text.split(/\s+/).filter(Boolean).map(word => {
    const match = TERM.exec(word);
    if (!match) {
      const wanted = word.toLowerCase();
      return trial => [trial.name, trial.state, ...Object.values(trial.values ?? {})].some(value => String(value).toLowerCase().includes(wanted));
    }
    const [, name, sign, wanted] = match;
    const wantedNumber = Number(wanted);
    return trial => {
      const value = field(trial, name);
      if (sign === '~') return String(value ?? '').toLowerCase().includes(wanted.toLowerCase());
      if (sign === '=') return String(value) === wanted || (wanted !== '' && value === wantedNumber);
      if (sign === '!=') return String(value) !== wanted && value !== wantedNumber;
      if (typeof value !== 'number') return false;
      return sign === '<' ? value < wantedNumber : sign === '>' ? value > wantedNumber : sign === '<=' ? value <= wantedNumber : value >= wantedNumber;
    };
  });
  return trial => terms.every(term => term(trial));
}
