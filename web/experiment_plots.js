// SPDX-License-Identifier: Apache-2.0
// The pictures of an experiment. Each is made once with `study`, which changes under it, and repainted: {element, update()}.
// study: {experiment, all, shown, axes, metrics, objective, isMaximized, best, open(trial)}.
import {card, fill, h, lasted, number} from './dom.js';
import {ParallelPlot, colourOf, isDark, linesPlot, pointsPlot, ramp, robustExtent, scaleOf} from './plots.js';
import {front, history, importance} from './statistics.js';

const textOf = (study, trial) => '#' + trial.order + ' ' + trial.state + '\n' + study.objective + ' ' + number(trial.value) + '\n' +
  Object.entries(trial.values).slice(0, 8).map(([name, value]) => name + ' ' + number(value)).join('\n');

// From bad (0) to good (1), by rank among those shown: a few bad trials must not make all others look alike.
function goodness(study) {
  const done = study.shown.filter(trial => trial.value !== undefined).sort((a, b) => study.isMaximized ? a.value - b.value : b.value - a.value);
  const parts = new Map(done.map((trial, i) => [trial, done.length < 2 ? 1 : i / (done.length - 1)]));
  return trial => parts.get(trial) ?? 0;
}

function rampLegend(study) {
  return h('div', {class: 'legend', 'aria-hidden': 'true'}, ['worse', 0, 0.25, 0.5, 0.75, 1, 'better'].map(stop =>
    typeof stop === 'string' ? h('span', {}, stop + (stop === 'better' ? ' ' + study.objective : '')) : h('i', {style: {background: ramp(stop), margin: 0}})));
}

export function historyCard(study) {
  const of = () => history(study.experiment, study.shown);
  const plot = pointsPlot('History of ' + study.objective, 300, style => of().map(({trial, value}) => ({
    x: trial.order, y: value, colour: trial.key === study.best?.key ? style('accent') : colourOf(0), text: textOf(study, trial), open: () => study.open(trial),
    radius: trial.key === study.best?.key ? 6 : undefined, ring: trial.key === study.best?.key ? style('card') : undefined,
  })), () => {
    let points = of();
    return {
      x: scaleOf(0, Math.max(1, study.all.length - 1)), y: scaleOf(...robustExtent(points.map(p => p.value))), xName: 'trial', yName: study.objective,
      over(c, px, py, style) {
        c.strokeStyle = style('accent');
        c.lineWidth = 2.2;
        c.beginPath();
        // From the first good one on.
        points = points.filter(p => p.best !== undefined);
        points.forEach((p, i) => {
          if (i) c.lineTo(px(p.trial.order), py(points[i - 1].best));
          if (i) c.lineTo(px(p.trial.order), py(p.best));
          else c.moveTo(px(p.trial.order), py(p.best));
        });
        if (points.length) c.lineTo(px(Math.max(1, study.all.length - 1)), py(points.at(-1).best));
        c.stroke();
        const goal = study.experiment.objective?.goal;
        if (goal === undefined) return;
        c.setLineDash([5, 5]);
        c.strokeStyle = style('soft');
        c.lineWidth = 1.2;
        c.beginPath();
        c.moveTo(px(0), py(goal));
        c.lineTo(px(study.all.length), py(goal));
        c.stroke();
        c.setLineDash([]);
      },
    };
  });
  const nothing = h('p', {class: 'soft'}, 'No trial has a value yet.');
  return {
    element: card('History', [nothing, plot.element, h('div', {class: 'legend'}, h('span', {}, h('i', {style: {background: 'var(--busy)'}}), 'a trial'), h('span', {}, h('i', {style: {background: 'var(--accent)'}}), 'the best so far'))]),
    update() {
      nothing.hidden = study.shown.some(trial => trial.value !== undefined);
      plot.describe(study.best ? 'The best of ' + study.shown.length + ' trials is ' + study.objective + ' ' + number(study.best.value) + ' of trial ' + study.best.order : 'No trial has ended yet');
      plot.paint();
    },
  };
}

export function importanceCard(study, delay = 1500) {
  const list = h('dl', {class: 'importance'});
  let last = 0;
  let count = -1;
  return {
    element: card('Importance of parameters', list),
    update() {
      const done = study.shown.filter(trial => trial.value !== undefined).length;
      if (done === count || (Date.now() - last < delay && count >= 10)) return;
      [last, count] = [Date.now(), done];
      const parts = importance(study.axes, study.shown);
      if (!parts.length) return fill(list, h('dd', {class: 'soft', style: {'grid-column': '1 / -1', margin: 0}}, 'Ten trials that have ended can tell.'));
      fill(list, parts.map(({name, part}) => [h('dt', {class: 'wrap'}, name), h('dd', {style: {margin: 0}}, h('div', {class: 'bar', 'aria-hidden': 'true'}, h('i', {style: {width: part * 100 + '%'}}))), h('dd', {class: 'num', style: {margin: 0}}, Math.round(part * 100) + ' %')]));
    },
  };
}

export function parallelCard(study, brush) {
  const plot = new ParallelPlot('Parallel coordinates', () => {
    const good = goodness(study);
    const lines = study.shown.filter(trial => trial.value !== undefined).map(trial => ({trial, good: good(trial)})).sort((a, b) => a.good - b.good);
    const axes = [...study.axes.map(axis => ({...axis, get: trial => trial.values[axis.name]})), ...study.metricAxes().map(axis => ({...axis, get: trial => study.metric(trial, axis.name)}))];
    return {axes, lines: lines.map(({trial, good: part}) => ({trial, colour: ramp(part), isStrong: trial.key === study.best?.key, text: textOf(study, trial), open: () => study.open(trial)}))};
  }, brush);
  return {
    element: card('Parallel coordinates', [plot.element, rampLegend(study), h('p', {class: 'soft small'}, 'Drag along an axis to keep the trials there; the filter above says the same in words.')]),
    update() {
      plot.plot.describe(study.shown.length + ' trials over ' + study.axes.map(axis => axis.name).join(', ') + '; the best has ' + Object.entries(study.best?.values ?? {}).map(([name, value]) => name + ' ' + number(value)).join(', '));
      plot.paint();
    },
  };
}

function scaleOfAxis(axis) {
  if (!axis.choices) return scaleOf(axis.low, axis.high, axis.isLog, axis.isWhole);
  const n = axis.choices.length;
  return {low: 0, high: 1, place: part => n < 2 ? 0.5 : 0.06 + 0.88 * part, ticks: () => axis.choices.slice(0, 12).map(choice => axis.place(choice)), words: part => axis.label(part)};
}
const atAxis = (axis, value) => axis.choices ? axis.place(value) : value;

export function slicesCards(study) {
  const element = h('div', {class: 'small-plots'});
  let plots = [];
  let names = '';
  const make = () => {
    plots = study.axes.map(axis => {
      const own = () => study.axes.find(each => each.name === axis.name) ?? axis;
      const plot = pointsPlot(study.objective + ' by ' + axis.name, 230, () => study.shown.filter(trial => trial.value !== undefined && trial.values[axis.name] !== undefined).map(trial => ({
        x: atAxis(own(), trial.values[axis.name]), y: trial.value, colour: ramp(trial.order / Math.max(1, study.all.length - 1)), text: textOf(study, trial), open: () => study.open(trial),
      })), () => ({x: scaleOfAxis(own()), y: scaleOf(...robustExtent(study.shown.map(trial => trial.value ?? NaN))), xName: axis.name, yName: study.objective}));
      return plot;
    });
    fill(element, plots.map(plot => h('section', {class: 'card'}, plot.element)));
  };
  return {
    element: h('div', {class: 'stack close'}, h('p', {class: 'soft small'}, 'Darker or brighter points are later trials.'), element),
    update() {
      const now = study.axes.map(axis => axis.name).join('\n');
      if (now !== names) {
        names = now;
        make();
      }
      for (const plot of plots) plot.paint();
    },
  };
}

// How good it is between the trials, by the values of those near, over two parameters.
export function contourCard(study) {
  let pair = [0, 1];
  const pick = (which, label) => h('select', {'aria-label': label, on: {change: event => {
    pair[which] = Number(event.target.value);
    plot.paint();
  }}});
  const selects = [pick(0, 'Across'), pick(1, 'Upwards')];
  const chosen = () => pair.map((i, n) => study.axes[i] ?? study.axes[n] ?? study.axes[0]);
  const known = () => study.shown.filter(trial => trial.value !== undefined);
  const plot = pointsPlot('Contour', 340, style => {
    const [a, b] = chosen();
    return known().map(trial => ({x: atAxis(a, trial.values[a.name]), y: atAxis(b, trial.values[b.name]), colour: trial.key === study.best?.key ? style('accent') : style('card'), ring: style('soft'), radius: 3,
      text: textOf(study, trial), open: () => study.open(trial)}));
  }, () => {
    const [a, b] = chosen();
    return {x: scaleOfAxis(a), y: scaleOfAxis(b), xName: a.name, yName: b.name, under(c, px, py, style, inner) {
      const good = goodness(study);
      const step = Math.ceil(known().length / 600);
      const points = known().filter((_, i) => i % step === 0).map(trial => [px(atAxis(a, trial.values[a.name])), py(atAxis(b, trial.values[b.name])), good(trial)]);
      if (points.length < 3) return;
      const size = 11;
      const wide = (inner.right - inner.left) / 7;
      for (let x = inner.left; x < inner.right; x += size) {
        for (let y = inner.top; y < inner.bottom; y += size) {
          let sum = 0;
          let weight = 0;
          for (const [u, v, value] of points) {
            const w = Math.exp(-((u - x - size / 2) ** 2 + (v - y - size / 2) ** 2) / (2 * (wide / 2.5) ** 2));
            sum += w * value;
            weight += w;
          }
          c.globalAlpha = Math.min(0.85, weight * 0.8);
          c.fillStyle = ramp(Math.round(sum / (weight || 1) * 10) / 10);
          c.fillRect(x, y, Math.min(size, inner.right - x), Math.min(size, inner.bottom - y));
        }
      }
      c.globalAlpha = 1;
    }};
  });
  return {
    element: card('Contour', [plot.element, rampLegend(study)], selects),
    update() {
      selects.forEach((select, which) => {
        if (select.options.length !== study.axes.length) fill(select, study.axes.map((axis, i) => h('option', {value: i, selected: i === pair[which]}, axis.name)));
      });
      if (study.axes.length > 1) plot.paint();
    },
  };
}

const MOST_CURVES = 400;

export function curvesCards(study) {
  const element = h('div', {class: 'stack'});
  const plots = new Map();
  return {
    element,
    update() {
      const names = study.metrics.filter(name => study.shown.some(trial => trial.curves?.[name]));
      if (!names.length && !plots.size)
        return fill(element, card('Curves', h('p', {class: 'soft'}, 'No trial has reported a metric more than once yet.')));
      if (names.length !== plots.size) {
        plots.clear();
        for (const name of names) {
          plots.set(name, linesPlot(name + ' of each trial while it ran', 320, () => {
            const good = goodness(study);
            const with_ = study.shown.filter(trial => trial.curves?.[name]).sort((a, b) => good(a) - good(b)).slice(-MOST_CURVES);
            return with_.map(trial => ({name: '#' + trial.order, points: trial.curves[name], colour: trial.state === 'EarlyStopped' ? (isDark() ? '#77828d' : '#9aa5b0') : ramp(good(trial)),
              alpha: with_.length > 60 ? 0.55 : 0.9, width: trial.key === study.best?.key ? 3 : 1.5, open: () => study.open(trial)}));
          }, {xName: 'report', yName: name}));
        }
        fill(element, [...plots].map(([name, plot]) => card(name + ' while trials ran', [plot.element, rampLegend(study)])));
      }
      for (const plot of plots.values()) plot.paint();
    },
  };
}

export function paretoCard(study) {
  const names = () => [...study.metrics, 'duration'];
  const valueOf = (trial, name) => name === 'duration' ? lasted(trial) : study.metric(trial, name);
  let pair = [];
  let signs = [];
  const wishes = [['max', 'more is better'], ['min', 'less is better']];
  const controls = [0, 1].map(which => [
    h('select', {'aria-label': which ? 'Upwards' : 'Across', on: {change: event => {
      pair[which] = event.target.value;
      show();
    }}}),
    h('select', {'aria-label': (which ? 'Upwards' : 'Across') + ': what is better', on: {change: event => {
      signs[which] = event.target.value === 'max' ? -1 : 1;
      show();
    }}}, wishes.map(([value, title]) => h('option', {value}, title)))]);
  const points = () => study.shown.map(trial => ({trial, x: valueOf(trial, pair[0]), y: valueOf(trial, pair[1])})).filter(p => p.x !== undefined && p.y !== undefined && p.trial.ended !== undefined && !p.trial.violation);
  let edge = new Set();
  const plot = pointsPlot('Pareto front', 340, style => points().map(p => ({x: p.x, y: p.y, colour: edge.has(p.trial) ? style('accent') : style('line-strong'), radius: edge.has(p.trial) ? 5 : undefined,
    text: '#' + p.trial.order + '\n' + pair[0] + ' ' + number(p.x) + '\n' + pair[1] + ' ' + number(p.y), open: () => study.open(p.trial)})), () => {
    const all = points();
    const kept = front(all, signs);
    edge = new Set(kept.map(p => p.trial));
    return {x: scaleOf(...robustExtent(all.map(p => p.x))), y: scaleOf(...robustExtent(all.map(p => p.y))), xName: pair[0], yName: pair[1], over(c, px, py, style) {
      c.strokeStyle = style('accent');
      c.lineWidth = 2;
      c.beginPath();
      kept.forEach((p, i) => {
        if (i) c.lineTo(px(p.x), py(kept[i - 1].y));
        if (i) c.lineTo(px(p.x), py(p.y));
        else c.moveTo(px(p.x), py(p.y));
      });
      c.stroke();
    }};
  });
  const list = h('p', {class: 'soft small wrap'});
  const show = () => {
    plot.paint();
    list.textContent = edge.size ? (edge.size === 1 ? '1 trial' : edge.size + ' trials') + ' that no other beats in both: ' + [...edge].slice(0, 30).map(trial => '#' + trial.order).join(', ') : '';
    plot.describe(list.textContent);
  };
  return {
    element: card('Pareto front', [plot.element, list], controls),
    update() {
      if (!pair.length) {
        const more = study.experiment.objective?.additionalObjectives?.[0];
        pair = [names()[0], more?.metricName ?? names()[1]];
        const isLess = more ? more.type === 'minimize' : /loss|error|time|duration|latency|rmse|mae|mse/i.test(pair[1]) || !study.isMaximized;
        signs = [study.isMaximized ? -1 : 1, isLess ? 1 : -1];
        controls.forEach(([metric, wish], which) => {
          fill(metric, names().map(name => h('option', {value: name, selected: name === pair[which]}, name)));
          wish.value = signs[which] < 0 ? 'max' : 'min';
        });
      }
      show();
    },
  };
}

// Two or more trials side by side over one metric.
export function compareCurves(study, trials) {
  const names = study.metrics.filter(name => trials.some(trial => trial.curves?.[name]));
  return names.map(name => linesPlot(name, 240, () => trials.filter(trial => trial.curves?.[name]).map((trial, i) => ({name: '#' + trial.order, points: trial.curves[name], colour: colourOf(i)})), {xName: 'report', yName: name}));
}
