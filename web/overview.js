// SPDX-License-Identifier: Apache-2.0
// What goes on now: how many of everything, what runs, and what waits for what.
import {ago, bar, card, chip, empty, h, number, tile} from './dom.js';
import {jobProgress} from './jobs.js';
import {isMaximized, objectiveName} from './statistics.js';

const EXAMPLE = 'kubectl apply -f experiment.yaml\nkubectl apply -f tfjob.yaml';

export const byAge = (a, b) => (b.created ?? 0) - (a.created ?? 0);
export const experimentHref = row => '#/experiments/' + encodeURIComponent(row.namespace) + '/' + encodeURIComponent(row.name);
export const jobHref = row => '#/jobs/' + encodeURIComponent(row.kind) + '/' + encodeURIComponent(row.namespace) + '/' + encodeURIComponent(row.name);

export function trialsDone(experiment) {
  const counts = experiment.counts ?? {};
  return ['trialsSucceeded', 'trialsFailed', 'trialsKilled', 'trialsEarlyStopped', 'trialMetricsUnavailable'].reduce((sum, name) => sum + (counts[name] ?? 0), 0);
}

// The best value that the status tells.
export function bestOf(experiment) {
  const values = experiment.best?.metrics?.[objectiveName(experiment)];
  return values && (isMaximized(experiment) ? values.max : values.min);
}

export function waitingPods(live) {
  return live.all('pods').filter(pod => pod.state === 'Pending' && !pod.node).sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0) || (a.created ?? 0) - (b.created ?? 0));
}

export const overview = {
  title: 'Overview',
  kinds: () => ['jobs', 'pods', 'nodes', 'experiments'],
  make() {
    const element = h('div', {class: 'stack'});
    return {element, update: live => element.replaceChildren(...content(live))};
  },
};

function content(live) {
  const jobs = live.all('jobs').sort(byAge);
  const experiments = live.all('experiments').sort(byAge);
  const nodes = live.all('nodes');
  const gpus = nodes.flatMap(node => node.gpus ?? []);
  const waiting = waitingPods(live);
  const running = (rows, state) => rows.filter(row => row.state === state).length;
  // Nodes belong to no namespace: many may not see them.
  const refused = ['jobs', 'experiments', 'pods'].filter(kind => live.refused.has(kind)).map(kind => live.errors[kind]);
  const tiles = h('dl', {class: 'tiles', style: {margin: 0}},
    tile('Experiments running', running(experiments, 'Running'), 'of ' + experiments.length),
    tile('Jobs running', running(jobs, 'Running'), 'of ' + jobs.length),
    tile('Pods that wait', waiting.length),
    tile('Nodes ready', live.refused.has('nodes') ? '–' : running(nodes, 'Ready'), live.refused.has('nodes') ? 'not yours to see' : 'of ' + nodes.length),
    tile('GPUs', live.refused.has('nodes') ? '–' : gpus.length, gpus.some(gpu => !gpu.isHealthy) ? gpus.filter(gpu => !gpu.isHealthy).length + ' unhealthy' : ''));
  const head = h('div', {class: 'head'}, h('h1', {}, 'Overview'));
  if (refused.length === 3)
    return [head, h('section', {class: 'card'}, h('p', {class: 'problem'}, refused[0]), h('p', {class: 'empty'}, 'Write the name of a namespace that you may see into the field at the top.'))];
  if (!jobs.length && !experiments.length && live.whole.has('jobs') && !refused.length)
    return [head, tiles, h('section', {class: 'card'}, empty('Nothing was submitted yet. A job or an experiment begins with', EXAMPLE),
      h('p', {class: 'empty', style: {padding: 0}}, h('a', {href: '#/new'}, 'or write an experiment here')))];
  return [head, refused.length > 0 && h('p', {class: 'problem'}, refused.join('\n')), tiles, h('div', {class: 'grid'},
    card('Experiments', experiments.length ? h('ul', {class: 'list'}, experiments.slice(0, 8).map(experimentLine)) : h('p', {class: 'soft'}, 'There are none.')),
    card('Jobs', jobs.length ? h('ul', {class: 'list'}, jobs.slice(0, 8).map(jobLine)) : h('p', {class: 'soft'}, 'There are none.')),
    waiting.length > 0 && card('What waits, and for what', h('ul', {class: 'list'}, waiting.slice(0, 6).map(pod => h('li', {},
      h('div', {class: 'line'}, h('strong', {class: 'wrap'}, pod.name), h('span', {class: 'soft small end'}, 'for ' + ago(pod.created).replace(' ago', ''))),
      h('p', {class: 'soft small wrap'}, pod.why ?? 'nobody has looked at it yet'))), waiting.length > 6 && h('li', {}, h('a', {href: '#/cluster'}, 'and ' + (waiting.length - 6) + ' more'))))),
  ].filter(Boolean);
}

function experimentLine(row) {
  const done = trialsDone(row);
  return h('li', {}, h('div', {class: 'line'}, h('a', {href: experimentHref(row), class: 'wrap'}, row.name), chip(row.state),
    h('span', {class: 'num small end'}, objectiveName(row) + ' ', h('strong', {}, number(bestOf(row))))),
  row.maxTrialCount ? bar(done / row.maxTrialCount, row.name + ': ' + done + ' of ' + row.maxTrialCount + ' trials') : null,
  h('p', {class: 'soft small'}, done + (row.maxTrialCount ? ' of ' + row.maxTrialCount : '') + ' trials, ' + (row.counts?.trialsRunning ?? 0) + ' running, ' + (row.algorithm?.algorithmName ?? '')));
}

function jobLine(row) {
  const progress = jobProgress(row);
  return h('li', {}, h('div', {class: 'line'}, h('a', {href: jobHref(row), class: 'wrap'}, row.name), chip(row.state), h('span', {class: 'soft small end'}, progress.words)),
    progress.part !== undefined && bar(progress.part, row.name + ': ' + progress.words));
}
