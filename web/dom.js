// SPDX-License-Identifier: Apache-2.0
// Elements, and numbers and times as people read them. Texts become text nodes: nothing that comes from a cluster is ever
// read as HTML.

// h('a', {class: 'x', href: '#/', on: {click}, style: {width: '3%'}}, 'text', child, [more]).
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === 'style') {
      for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    } else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected') {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

// For those who listen rather than look.
export function say(text) {
  document.getElementById('said').textContent = text;
}

const GOOD = new Set(['Succeeded', 'Ready', 'Complete']);
const BAD = new Set(['Failed', 'NotReady', 'Killed', 'MetricsUnavailable']);
const BUSY = new Set(['Running', 'Restarting']);
const WAIT = new Set(['Pending', 'Suspended', 'EarlyStopped', 'Unknown']);

export function chip(state) {
  const look = GOOD.has(state) ? 'good' : BAD.has(state) ? 'bad' : BUSY.has(state) ? 'busy' : WAIT.has(state) ? 'wait' : '';
  const text = String(state ?? '').replace(/([a-z])([A-Z])/g, '$1 $2');
  return h('span', {class: 'chip ' + look}, text.charAt(0) + text.slice(1).toLowerCase());
}

export function number(value) {
  if (typeof value !== 'number') return value === undefined || value === null ? '–' : String(value);
  if (!Number.isFinite(value)) return '–';
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return value.toExponential(2).replace('e+', 'e');
  return String(+value.toPrecision(4));
}

export function duration(seconds) {
  if (seconds === undefined || !Number.isFinite(seconds) || seconds < 0) return '–';
  const s = Math.round(seconds);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s < 600 ? (s % 60) + ' s' : '');
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

export const now = () => Date.now() / 1000;

export function lasted(row) {
  if (row.started === undefined) return undefined;
  return (row.ended ?? now()) - row.started;
}

export function ago(seconds) {
  return seconds === undefined ? '–' : duration(Math.max(0, now() - seconds)).trim() + ' ago';
}

export function clock(seconds) {
  return seconds === undefined ? '–' : new Date(seconds * 1000).toLocaleString();
}

export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    ++unit;
  }
  return (count >= 100 || unit === 0 ? Math.round(count) : +count.toFixed(1)) + ' ' + units[unit];
}

export function bar(part, label) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, part || 0)));
  return h('div', {class: 'bar', role: 'progressbar', 'aria-valuenow': percent, 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-label': label},
    h('i', {style: {width: percent + '%'}}));
}

export function card(title, content, actions) {
  return h('section', {class: 'card'}, h('header', {}, h('h2', {}, title), actions && h('div', {class: 'actions'}, actions)), content);
}

export function empty(text, command) {
  return h('div', {class: 'empty'}, h('p', {}, text), command && h('pre', {}, h('code', {}, command)));
}

export function tile(name, value, more) {
  return h('div', {class: 'tile'}, h('dt', {}, name), h('dd', {}, value, more && h('small', {}, ' ' + more)));
}

// Asks before what cannot be undone.
export function confirmed(question, word) {
  return new Promise(resolve => {
    const dialog = h('dialog', {'aria-label': question}, h('p', {}, question), h('div', {class: 'row', style: {'margin-top': '1rem', 'justify-content': 'flex-end'}},
      h('button', {type: 'button', on: {click: () => dialog.close('')}}, 'Cancel'),
      h('button', {type: 'button', class: 'danger', on: {click: () => dialog.close('yes')}}, word)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Tabs that the arrow keys move along. `items` are [name, title]; `choose` gets the name.
export function tabs(label, items, current, choose) {
  const list = h('div', {class: 'tabs', role: 'tablist', 'aria-label': label});
  items.forEach(([name, title], i) => {
    list.append(h('button', {type: 'button', role: 'tab', id: 'tab-' + name, 'aria-selected': String(name === current), tabindex: name === current ? 0 : -1,
      on: {
        click: () => choose(name),
        keydown: event => {
          const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
          if (!step) return;
          event.preventDefault();
          const next = items[(i + step + items.length) % items.length][0];
          choose(next);
          document.getElementById('tab-' + next)?.focus();
        },
      }}, title));
  });
  // On a phone the chosen one may stand beyond the edge.
  requestAnimationFrame(() => list.querySelector('[aria-selected=true]')?.scrollIntoView({block: 'nearest', inline: 'nearest'}));
  return list;
}

// Runs `renew`, which makes what is in `root` anew, and puts the focus where it was.
export function keepFocus(root, renew) {
  const active = document.activeElement;
  const mark = root.contains(active) ? ['id', 'href', 'data-focus'].map(name => [name, active.getAttribute(name)]).find(([, value]) => value) : undefined;
  renew();
  if (mark) root.querySelector('[' + mark[0] + '="' + CSS.escape(mark[1]) + '"]')?.focus({preventScroll: true});
}

const ICONS = {
  sun: 'M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6l1.4 1.4M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8z',
  moon: 'M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z',
  leave: 'M14 4h4a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-4M10 8l-4 4l4 4M6 12h10',
  close: 'M6 6l12 12M18 6L6 18',
};

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}
