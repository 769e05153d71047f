// SPDX-License-Identifier: Apache-2.0
// The frame of the page: which view is shown, by the address alone, so that a link keeps what is seen.
import {fill, h, icon, keepFocus, say} from './dom.js';
import {Live, askOtherTabs, forgetKey, hasKey, read, setKey, whenRefused} from './connection.js';
import {overview} from './overview.js';
import {job, jobs} from './jobs.js';
import {cluster} from './cluster.js';
import {experiment, experiments} from './experiments.js';
import {create} from './create.js';

const main = document.getElementById('main');
const offline = document.getElementById('offline');
const namespaceInput = document.getElementById('namespace');
const NAV = [['', 'Overview'], ['experiments', 'Experiments'], ['jobs', 'Jobs'], ['cluster', 'Cluster']];

// What stands behind '#': "/experiments/default/search?view=trials&sort=lr".
class State {
  constructor() {
    const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
    this.parts = path.split('/').map(part => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
    this.query = new URLSearchParams(query ?? '');
    this.path = path;
  }

  get(name) { return this.query.get(name) ?? undefined; }

  // The address follows what is done, without a new entry in the history for each letter.
  set(name, value) {
    if (value) this.query.set(name, value);
    else this.query.delete(name);
    const query = this.query.toString();
    history.replaceState(null, '', '#/' + this.path + (query ? '?' + query : ''));
  }
}

function viewOf(parts) {
  switch (parts[0]) {
    case '': return overview;
    case 'experiments': return parts.length >= 3 ? experiment : experiments;
    case 'jobs': return parts.length >= 4 ? job : jobs;
    case 'cluster': return cluster;
    case 'new': return create;
    default: return undefined;
  }
}

let who = {rights: {}};
let live, view;
let namespace = '';

function showNav(current) {
  fill(document.getElementById('views'), NAV.map(([path, title]) => h('a', {href: '#/' + path, 'aria-current': (current === path || (current === 'new' && path === 'experiments')) && 'page'}, title)));
}

function stop() {
  live?.stop();
  view?.stop?.();
  live = view = undefined;
  offline.hidden = true;
}

function show() {
  if (!hasKey()) return askForKey();
  stop();
  const state = new State();
  const kind = viewOf(state.parts);
  showNav(state.parts[0]);
  if (!kind) {
    fill(main, h('div', {class: 'empty'}, h('h1', {}, 'There is no such view'), h('a', {href: '#/'}, 'To the overview')));
    return;
  }
  if (state.get('ns') !== undefined) namespace = state.get('ns');
  namespaceInput.value = namespace;
  const title = typeof kind.title === 'function' ? kind.title(state) : kind.title;
  document.title = title + ' · weft';
  view = kind.make(state, who.rights);
  fill(main, view.element);
  say(title);
  if (document.activeElement === document.body || !document.contains(document.activeElement)) main.focus({preventScroll: true});
  scrollTo(0, 0);
  const kinds = kind.kinds(state);
  if (!kinds.length) return;
  const shown = view;
  live = new Live(kinds, kind.query?.(state) ?? {namespace}, changed => {
    if (shown === view) keepFocus(main, () => shown.update(live, changed));
    offerNamespaces();
  }, text => {
    offline.textContent = text;
    offline.hidden = !text;
  });
  shown.update(live, new Set());
}

const known = new Set();
function offerNamespaces() {
  const before = known.size;
  for (const rows of Object.values(live?.rows ?? {})) for (const row of rows.values()) if (row.namespace) known.add(row.namespace);
  if (known.size !== before) fill(document.getElementById('namespaces'), [...known].sort().map(name => h('option', {value: name})));
}

namespaceInput.addEventListener('change', async () => {
  namespace = namespaceInput.value.trim();
  const state = new State();
  state.set('ns', namespace);
  await learnRights();
  show();
});

async function learnRights() {
  who = await read('/api/who', {namespace});
  document.getElementById('leave').hidden = false;
}

// Whose rights end at one namespace begins there, where its name is known.
async function enter() {
  await learnRights();
  if (namespace) return;
  namespace = who.namespace || (who.rights['see jobs'] === false && /^system:serviceaccount:([^:]+):/.exec(who.user)?.[1]) || '';
  if (namespace) await learnRights();
}

// The one thing that is there before a key is.
function askForKey(problem) {
  stop();
  who = {rights: {}};
  document.getElementById('leave').hidden = true;
  showNav(null);
  const input = h('input', {type: 'password', autocomplete: 'off', spellcheck: 'false', id: 'key', required: true});
  const error = h('p', {class: 'problem', role: 'alert', hidden: !problem}, problem);
  const form = h('form', {class: 'card key', on: {submit: async event => {
    event.preventDefault();
    error.hidden = true;
    setKey(input.value.trim());
    try {
      await enter();
      show();
    } catch (failure) {
      askForKey(failure.message);
    }
  }}}, h('h1', {}, 'weft'), h('p', {class: 'soft'}, 'The key that “weft up” or “weft ui” has printed, or a token of the cluster.'),
  h('label', {class: 'field', for: 'key'}, h('span', {}, 'Key'), input), error, h('button', {class: 'main', style: {'justify-content': 'center'}}, 'Open'));
  fill(main, form);
  input.focus();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  fill(document.getElementById('theme'), icon(theme === 'dark' ? 'sun' : 'moon'));
}

function start() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const chosen = localStorage.getItem('weft-theme');
  setTheme(chosen ?? (dark.matches ? 'dark' : 'light'));
  dark.addEventListener('change', () => {
    if (localStorage.getItem('weft-theme')) return;
    setTheme(dark.matches ? 'dark' : 'light');
    show();
  });
  document.getElementById('theme').addEventListener('click', () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    localStorage.setItem('weft-theme', next);
    setTheme(next);
    if (hasKey()) show();
  });
  const leave = document.getElementById('leave');
  fill(leave, icon('leave'));
  leave.addEventListener('click', () => forgetKey(true));
  document.getElementById('skip').addEventListener('click', event => {
    event.preventDefault();
    main.focus();
  });
  whenRefused(() => askForKey());
  addEventListener('hashchange', show);
  begin();
}

async function begin() {
  const state = new State();
  if (state.get('ns')) namespace = state.get('ns');
  if (!hasKey()) {
    const key = await askOtherTabs();
    if (key) setKey(key);
  }
  if (!hasKey()) return askForKey();
  try {
    await enter();
  } catch (failure) {
    if (failure.code === 401) return;
    offline.textContent = failure.message;
    offline.hidden = false;
  }
  show();
}

start();
