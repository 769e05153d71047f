// SPDX-License-Identifier: Apache-2.0
// Nodes with what is taken of them, each device with who has it, and the queue with what everybody waits for.
import {ago, bytes, card, chip, empty, fill, h, keepFocus, number} from './dom.js';
import {waitingPods} from './overview.js';

function meter(name, used, all, words) {
  const part = all > 0 ? used / all : 0;
  return h('div', {class: 'meter'}, h('span', {}, name), h('span', {class: 'num soft'}, words),
    h('div', {class: 'bar', role: 'meter', 'aria-label': name + ': ' + words, 'aria-valuenow': Math.round(part * 100), 'aria-valuemin': 0, 'aria-valuemax': 100},
      h('i', {class: part > 1 ? 'other' : '', style: {width: Math.min(100, part * 100) + '%'}})));
}

// Who has each device: pods by index, those without indices one after another.
function holders(gpus, pods) {
  const by = gpus.map(() => []);
  for (const pod of pods) {
    const indices = pod.gpus ? pod.gpus.split(',').map(Number) : [];
    for (const i of indices) by[i]?.push(pod);
    if (indices.length || !pod.gpuCount) continue;
    let left = pod.gpuCount;
    for (let i = 0; i < by.length && left > 0; ++i) {
      if (by[i].length) continue;
      by[i].push(pod);
      --left;
    }
  }
  return by;
}

function nodeCard(node, pods) {
  const sum = name => pods.reduce((all, pod) => all + (pod[name] ?? 0), 0);
  const gpus = node.gpus ?? [];
  const held = holders(gpus, pods);
  return h('section', {class: 'card', 'aria-label': 'Node ' + node.name}, h('header', {}, h('h2', {class: 'wrap'}, node.name), chip(node.state), node.isCordoned && h('span', {class: 'chip wait'}, 'Cordoned'),
    h('span', {class: 'soft small actions'}, pods.length + ' of ' + (node.pods ?? '?') + ' pods')),
  node.message && h('p', {class: 'problem'}, node.message),
  h('div', {style: {display: 'grid', gap: '.55rem'}}, meter('Processors', sum('cpu'), node.cpu, number(sum('cpu')) + ' of ' + number(node.cpu)),
    meter('Memory', sum('memory'), node.memory, bytes(sum('memory')) + ' of ' + bytes(node.memory ?? 0))),
  gpus.length > 0 && h('ul', {class: 'devices', 'aria-label': 'GPUs of ' + node.name}, gpus.map((gpu, i) => {
    const who = held[i].map(pod => pod.name).join(', ');
    const what = [gpu.model, gpu.memory ? bytes(gpu.memory) : ''].filter(Boolean).join(' ');
    return h('li', {class: !gpu.isHealthy ? 'sick' : who ? 'taken' : '', title: what}, 'GPU ' + i + ': ' + (!gpu.isHealthy ? 'unhealthy' : who || 'free'));
  })),
  node.taints?.length > 0 && h('p', {class: 'soft small wrap', style: {'margin-top': '.5rem'}}, 'Keeps away: ' + node.taints.join(', ')));
}

export const cluster = {
  title: 'Cluster',
  kinds: () => ['nodes', 'pods'],
  make() {
    const body = h('div', {class: 'stack'});
    const element = h('div', {class: 'stack'}, h('div', {class: 'head'}, h('h1', {}, 'Cluster')), body);
    return {element, update(live) {
      const waiting = waitingPods(live);
      const nodes = live.all('nodes').sort((a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}));
      const byNode = new Map();
      for (const pod of live.all('pods')) {
        if (!pod.node || pod.state === 'Succeeded' || pod.state === 'Failed') continue;
        if (!byNode.has(pod.node)) byNode.set(pod.node, []);
        byNode.get(pod.node).push(pod);
      }
      keepFocus(body, () => fill(body,
        (live.errors.nodes || live.errors.pods) && h('p', {class: 'problem'}, live.errors.nodes ?? live.errors.pods),
        h('section', {class: 'card flush'}, h('header', {}, h('h2', {}, 'Queue'), h('span', {class: 'soft small'}, (waiting.length === 1 ? '1 pod waits' : waiting.length + ' pods wait') + ' for a node')),
          waiting.length ? h('div', {class: 'scroll'}, h('table', {class: 'wrapping'}, h('thead', {}, h('tr', {}, ['Pod', 'Namespace', 'Priority', 'Asks for', 'Waits', 'Why'].map(title => h('th', {scope: 'col', class: title === 'Priority' ? 'num' : ''}, title)))),
            h('tbody', {}, waiting.slice(0, 500).map(pod => h('tr', {}, h('th', {scope: 'row', class: 'wrap'}, pod.name), h('td', {}, pod.namespace), h('td', {class: 'num'}, pod.priority ?? 0),
              h('td', {class: 'wrap'}, [pod.cpu && number(pod.cpu) + ' CPU', pod.memory && bytes(pod.memory), pod.gpuCount && pod.gpuCount + ' GPU'].filter(Boolean).join(', ') || '–'),
              h('td', {class: 'soft'}, ago(pod.created).replace(' ago', '')), h('td', {class: 'wrap'}, pod.why ?? 'nobody has looked at it yet')))))) : empty('Nothing waits.')),
        nodes.length ? h('div', {class: 'grid'}, nodes.slice(0, 300).map(node => nodeCard(node, byNode.get(node.name) ?? []))) : live.whole.has('nodes') && card('Nodes', empty('There are no nodes, or they may not be seen.'))));
    }};
  },
};
