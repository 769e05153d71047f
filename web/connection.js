// SPDX-License-Identifier: Apache-2.0
// What is asked of the server, with the key of whoever looks. The key stays in this tab: it is in no address and no cookie.

const STORED = 'weft-key';
let key = sessionStorage.getItem(STORED) ?? '';
let onRefused = () => {};
const channel = new BroadcastChannel('weft-key');

// A new tab asks the others, so that a link opens without the key being typed again.
channel.addEventListener('message', event => {
  if (event.data?.ask && key) channel.postMessage({key});
  if (event.data?.leave) forgetKey(false);
});

export function askOtherTabs() {
  return new Promise(resolve => {
    const done = event => {
      if (!event.data?.key) return;
      channel.removeEventListener('message', done);
      resolve(event.data.key);
    };
    channel.addEventListener('message', done);
    channel.postMessage({ask: true});
    setTimeout(() => resolve(''), 150);
  });
}

export const hasKey = () => key !== '';
export const whenRefused = handler => { onRefused = handler; };

export function setKey(value) {
  key = value;
  sessionStorage.setItem(STORED, value);
}

export function forgetKey(everywhere) {
  key = '';
  sessionStorage.removeItem(STORED);
  if (everywhere) channel.postMessage({leave: true});
  onRefused();
}

export class ServerError extends Error {
  constructor(answer, code) {
    super(answer.error ?? 'the server answers ' + code);
    this.code = code;
    this.fields = answer.fields ?? [];
  }
}

async function failure(response) {
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) forgetKey(false);
  return new ServerError(answer, response.status);
}

function address(path, query) {
  const parts = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '');
  return path + (parts.length ? '?' + new URLSearchParams(parts) : '');
}

export async function read(path, query) {
  const response = await fetch(address(path, query), {headers: {Authorization: 'Bearer ' + key}});
  if (!response.ok) throw await failure(response);
  return response.json();
}

export async function write(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: {Authorization: 'Bearer ' + key, 'Content-Type': 'application/json', 'X-Weft-Page': '1'},
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await failure(response);
  return response.json();
}

// Calls `take` with each piece of text until the stream ends or `signal` does.
export async function stream(path, query, signal, take) {
  const response = await fetch(address(path, query), {headers: {Authorization: 'Bearer ' + key}, signal});
  if (!response.ok) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    take(value);
  }
}

const LAST_PAUSE = 15000;

// The rows of some kinds, kept up to date. `changed(kinds)` is called at most once a frame, `connected(text)` with '' or
// with what is wrong.
export class Live {
  constructor(kinds, query, changed, connected) {
    this.kinds = kinds;
    this.rows = Object.fromEntries(kinds.map(kind => [kind, new Map()]));
    this.errors = {};
    this.refused = new Set();
    this.whole = new Set();
    this.changed = changed;
    this.connected = connected;
    this.abort = new AbortController();
    this.stale = new Set();
    this.run(query);
  }

  stop() {
    this.abort.abort();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }

  all(kind) {
    return [...(this.rows[kind]?.values() ?? [])];
  }

  async run(query) {
    for (let pause = 1000; !this.abort.signal.aborted; pause = Math.min(LAST_PAUSE, pause * 2)) {
      let problem = 'the server has ended the connection';
      const began = Date.now();
      try {
        this.fresh = Object.fromEntries(this.kinds.map(kind => [kind, new Map()]));
        this.rest = '';
        await stream('/api/live', {kinds: this.kinds.join(','), ...query}, this.abort.signal, text => this.take(text));
      } catch (error) {
        if (this.abort.signal.aborted || error.code === 401) return;
        problem = error.message;
      }
      if (this.abort.signal.aborted) return;
      if (Date.now() - began > 30000) pause = 1000;
      this.connected('Not connected (' + problem + '). What is shown may be old; trying again…');
      await new Promise(resolve => { this.timer = setTimeout(resolve, pause); });
    }
  }

  take(text) {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop();
    for (const line of lines) if (line) this.hear(JSON.parse(line));
  }

  hear({kind, row, gone, whole, error, code}) {
    if (row) this.fresh[kind].set(row.key, row);
    if (gone) this.fresh[kind].delete(gone);
    if (error) {
      // What is not there or may not be seen stays so; anything else is worth another try.
      if (code !== 403 && code !== 404) throw new Error(error);
      this.errors[kind] = error;
      if (code === 403) this.refused.add(kind);
    }
    if (whole || error) {
      this.rows[kind] = this.fresh[kind];
      this.whole.add(kind);
      if (whole) {
        delete this.errors[kind];
        this.refused.delete(kind);
      }
      this.connected('');
    }
    if (this.whole.has(kind)) this.tell(kind);
  }

  tell(kind) {
    this.stale.add(kind);
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const kinds = this.stale;
      this.stale = new Set();
      this.changed(kinds);
    });
  }
}
