// SPDX-License-Identifier: Apache-2.0
// Jobs: all of them, and one with its curves, tasks, logs and events.
import {ago, bar, card, chip, confirmed, duration, empty, fill, h, keepFocus, lasted, number, say, tabs, tile} from './dom.js';
import {read, write} from './connection.js';
import {byAge, jobHref} from './overview.js';
import {CurvePlots, LogView} from './logs.js';
import {StepView} from './step_trace.js';
import {Table} from './table.js';

export function jobProgress(job) {
  const progress = job.progress ?? {};
  if (progress.step === undefined) return {words: job.isSuspended ? 'suspended' : job.started ? 'for ' + duration(lasted(job)) : '', part: undefined};
  const part = progress.steps ? progress.step / progress.steps : undefined;
  const words = [progress.steps ? 'step ' + progress.step + ' of ' + progress.steps : 'step ' + progress.step, progress.timeLeft && progress.timeLeft !== '0' && progress.timeLeft + ' left', progress.lostSteps && progress.lostSteps + ' lost', progress.staleness && progress.staleness.mean > 0 && 'updates ' + progress.staleness.mean + ' stale'];
  return {part, words: words.filter(Boolean).join(', ')};
}

export const podsOf = (live, name, namespace) => live.all('pods').filter(pod => pod.namespace === namespace && (pod.owner === name || pod.name === name));

// Why a job does not go on: what its pods wait for.
function waitsFor(live, job) {
  const pods = podsOf(live, job.name, job.namespace);
  const waiting = pods.find(pod => pod.state === 'Pending' && pod.why) ?? pods.find(pod => pod.waiting);
  return waiting && (waiting.why ?? waiting.waiting);
}

export function failed(error) {
  say(error.message);
  alertOnce(error.message);
}

function alertOnce(text) {
  const dialog = h('dialog', {'aria-label': 'What went wrong'}, h('p', {class: 'problem'}, text),
    h('div', {class: 'row', style: {'margin-top': '1rem', 'justify-content': 'flex-end'}}, h('button', {type: 'button', on: {click: () => dialog.close()}}, 'Close')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const noPod = () => h('p', {class: 'soft'}, 'No pod of this job is there (any more).');
const NO_CURVE = 'Nothing was printed yet that goes on as a curve: lines such as “step 120/600 loss 0.25” or “accuracy=0.93” do.';

export const jobs = {
  title: 'Jobs',
  kinds: () => ['jobs', 'pods'],
  make(state) {
    let live;
    const table = new Table({
      label: 'Jobs', sort: state.get('sort') ?? '-created', sorted: sort => state.set('sort', sort), open: () => {},
      nothing: empty('There are no jobs here. One begins with', 'kubectl apply -f tfjob.yaml'),
      columns: [
        {name: 'name', title: 'Name', value: row => row.name},
        {name: 'namespace', title: 'Namespace', value: row => row.namespace},
        {name: 'state', title: 'State', value: row => row.state, cell: row => chip(row.state)},
        {name: 'progress', title: 'Progress', value: row => jobProgress(row).part, cell: row => {
          const {part, words} = jobProgress(row);
          const why = waitsFor(live, row);
          if (why) return h('span', {class: 'soft', title: why}, 'waits: ' + why);
          return h('span', {style: {display: 'inline-grid', width: '16rem', 'vertical-align': 'middle'}}, h('span', {class: 'small'}, words), part !== undefined && bar(part, row.name + ': ' + words));
        }},
        {name: 'loss', title: 'Loss', isNumber: true, value: row => row.progress?.metrics?.loss, cell: row => number(row.progress?.metrics?.loss)},
        {name: 'lasted', title: 'Runs for', isNumber: true, value: lasted, cell: row => duration(lasted(row))},
        {name: 'created', title: 'Age', isNumber: true, value: row => row.created, cell: row => ago(row.created)},
      ],
    });
    const problem = h('p', {class: 'problem', hidden: true});
    const element = h('div', {class: 'stack'}, h('div', {class: 'head'}, h('h1', {}, 'Jobs')), problem, h('section', {class: 'card flush'}, table.element));
    return {element, update: now => {
      live = now;
      problem.hidden = !live.errors.jobs;
      problem.textContent = live.errors.jobs ?? '';
      table.set(live.all('jobs').map(row => ({...row, href: jobHref(row)})));
    }};
  },
};

export function eventList(live) {
  const events = live.all('events').sort((a, b) => (b.last ?? 0) - (a.last ?? 0));
  if (live.errors.events) return h('p', {class: 'problem'}, live.errors.events);
  if (!events.length) return h('p', {class: 'soft'}, 'There are none from the last hour.');
  return h('div', {class: 'scroll'}, h('table', {class: 'wrapping'}, h('thead', {}, h('tr', {}, ['When', 'What', 'Message'].map(title => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, events.slice(0, 200).map(event => h('tr', {}, h('td', {class: 'soft'}, ago(event.last)),
      h('td', {}, event.type === 'Warning' ? h('strong', {}, event.reason) : event.reason, event.count > 1 && ' ×' + event.count), h('td', {class: 'wrap'}, event.message ?? ''))))));
}

// The object as YAML, asked for when it is first seen.
export function objectText(kind, namespace, name) {
  const text = h('pre', {class: 'text', tabindex: 0, 'aria-label': 'YAML of ' + name}, 'loading…');
  read('/api/object', {kind, namespace, name}).then(answer => { text.textContent = answer.text; }, error => { text.textContent = error.message; });
  return text;
}

export const job = {
  title: state => state.parts[3],
  kinds: () => ['jobs', 'pods', 'events'],
  query: state => ({namespace: state.parts[2], object: state.parts[3]}),
  make(state, rights) {
    const [, kind, namespace, name] = state.parts;
    const head = h('div', {class: 'head'});
    const why = h('p', {class: 'banner', style: {'border-radius': '10px'}, hidden: true});
    const tiles = h('dl', {class: 'tiles', style: {margin: 0}});
    const body = h('div', {role: 'tabpanel', class: 'stack'});
    const tabBar = h('div');
    const element = h('div', {class: 'stack'}, head, why, tiles, tabBar, body);
    let live, row, log, plots, steps, shownTab, podName;
    let isPrevious = false;

    const act = (path, more) => write(path, {kind, namespace, name, ...more}).catch(failed);
    const openLog = () => {
      const pods = podsOf(live, name, namespace);
      const pod = pods.find(each => each.name === podName) ?? pods.find(each => /^(master|chief)$/i.test(each.type ?? '')) ?? pods.find(each => /worker/i.test(each.type ?? '')) ?? pods[0];
      if (!pod || (log?.pod === pod.name && log.isPrevious === isPrevious)) return pod;
      log?.stop();
      plots = new CurvePlots();
      steps = new StepView();
      const own = plots;
      const shownSteps = steps;
      log = new LogView(pod, pod.containers[0], () => {
        own.update(log.curves);
        hint.hidden = log.curves.names().length > 0;
        hint.textContent = log.problem ?? NO_CURVE;
        shownSteps.tell(log.problem);
      }, step => shownSteps.take(step), isPrevious);
      log.pod = pod.name;
      log.isPrevious = isPrevious;
      return pod;
    };
    const hint = h('p', {class: 'soft'}, NO_CURVE);
    const views = {
      curves: () => [openLog() ? card('Curves of ' + log.pod, [hint, plots.element], podPicker()) : card('Curves', noPod())],
      tasks: () => [taskTable()],
      step: () => [openLog() ? card('Steps of ' + log.pod, steps.element, podPicker()) : (steps ??= new StepView()).element],
      log: () => [openLog() ? card('Log', log.element, podPicker()) : card('Log', noPod())],
      events: () => [card('Events', eventList(live))],
      yaml: () => [card('YAML', objectText(kind, namespace, name))],
    };
    const podPicker = () => h('label', {class: 'row'}, h('span', {class: 'soft small'}, 'Task'), h('select', {'aria-label': 'Task', on: {change: event => {
      [podName, isPrevious] = [event.target.value.replace(/ before$/, ''), event.target.value.endsWith(' before')];
      show();
    }}}, podsOf(live, name, namespace).flatMap(pod => (pod.restarts ? ['', ' before'] : ['']).map(before => h('option', {value: pod.name + before,
      selected: pod.name === log?.pod && Boolean(before) === log.isPrevious}, pod.name + (before && ', before its restart'))))));
    const taskTable = () => {
      const pods = podsOf(live, name, namespace).sort((a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}));
      if (!pods.length) return card('Tasks', noPod());
      return h('section', {class: 'card flush'}, h('div', {class: 'scroll'}, h('table', {class: 'wrapping'}, h('thead', {}, h('tr', {}, ['Task', 'State', 'Node', 'GPUs', 'Restarts', 'Runs for', ''].map(title => h('th', {scope: 'col', class: /^R/.test(title) ? 'num' : ''}, title)))),
        h('tbody', {}, pods.map(pod => h('tr', {}, h('th', {scope: 'row', class: 'wrap'}, pod.name), h('td', {}, chip(pod.state)),
          h('td', {class: 'wrap'}, pod.node ?? h('span', {class: 'soft'}, pod.why ?? '–')), h('td', {}, pod.gpus ?? (pod.gpuCount || '–')), h('td', {class: 'num'}, pod.restarts ?? 0),
          h('td', {class: 'num'}, duration(lasted(pod))), h('td', {}, h('button', {type: 'button', 'data-focus': 'log-' + pod.name, on: {click: () => {
            [podName, isPrevious] = [pod.name, false];
            state.set('tab', 'log');
            show();
          }}}, 'Log'))))))));
    };
    const show = () => {
      const tab = views[state.get('tab')] ? state.get('tab') : 'curves';
      shownTab = tab;
      fill(tabBar, tabs('Of this job', [['curves', 'Curves'], ['tasks', 'Tasks'], ['step', 'Step'], ['log', 'Log'], ['events', 'Events'], ['yaml', 'YAML']], tab, next => {
        state.set('tab', next);
        show();
      }));
      body.setAttribute('aria-labelledby', 'tab-' + tab);
      fill(body, views[tab]());
      if (tab === 'curves' && log) plots.update(log.curves);
    };
    return {
      element,
      stop: () => log?.stop(),
      update(now, kinds) {
        live = now;
        row = live.all('jobs').find(each => each.kind === kind && each.namespace === namespace && each.name === name);
        const progress = row ? jobProgress(row) : {words: ''};
        keepFocus(head, () => fill(head, h('p', {class: 'crumb'}, h('a', {href: '#/jobs'}, 'Jobs'), ' / ' + namespace), h('h1', {}, name), row ? chip(row.state) : live.whole.has('jobs') && h('span', {class: 'soft'}, 'is not there (any more)'),
          row && h('div', {class: 'actions'}, rights['suspend jobs'] && row.ended === undefined && h('button', {type: 'button', 'data-focus': 'suspend', on: {click: () => act('/api/suspend', {suspend: !row.isSuspended})}}, row.isSuspended ? 'Resume' : 'Suspend'),
            rights['delete jobs'] && h('button', {type: 'button', class: 'danger', 'data-focus': 'delete', on: {click: async () => {
              if (await confirmed('Delete job ' + name + ' and its pods?', 'Delete')) await act('/api/delete').then(() => { location.hash = '#/jobs'; });
            }}}, 'Delete'))));
        const reason = row && waitsFor(live, row);
        const failure = row?.state === 'Failed' ? row.message : '';
        why.hidden = !reason && !failure;
        why.className = failure ? 'problem' : 'banner';
        why.textContent = failure || (reason ? 'Waits: ' + reason : '');
        if (row) {
          fill(tiles, tile('Progress', progress.part === undefined ? '–' : Math.round(progress.part * 100) + ' %', progress.words), tile('Runs for', duration(lasted(row))),
            Object.entries(row.progress?.metrics ?? {}).slice(0, 4).map(([metric, value]) => tile(metric, number(value))),
            tile('Pods', podsOf(live, name, namespace).filter(pod => pod.state === 'Running').length, 'running'));
        }
        if (!shownTab || (shownTab === 'tasks' && kinds.has('pods')) || (shownTab === 'events' && kinds.has('events')) || (!log && (shownTab === 'log' || shownTab === 'curves' || shownTab === 'step') && kinds.has('pods')))
          keepFocus(body, show);
      },
    };
  },
};
