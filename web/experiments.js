// SPDX-License-Identifier: Apache-2.0
// Experiments: all of them, and one with its trials.
import {ago, bar, card, chip, confirmed, duration, empty, fill, h, keepFocus, lasted, number, say, tabs, tile} from './dom.js';
import {write} from './connection.js';
import {bestOf, experimentHref, trialsDone} from './overview.js';
import {eventList, failed, objectText} from './jobs.js';
import {Table} from './table.js';
import {TrialPanel, comparePanel} from './trials.js';
import {axisOf, filterOf, isMaximized, metricNames, metricOf, namesIn, objectiveName, violation} from './statistics.js';
import {contourCard, curvesCards, historyCard, importanceCard, paretoCard, parallelCard, slicesCards} from './experiment_plots.js';

export const experiments = {
  title: 'Experiments',
  kinds: () => ['experiments'],
  make(state, rights) {
    const table = new Table({
      label: 'Experiments', sort: state.get('sort') ?? '-created', sorted: sort => state.set('sort', sort), open: () => {},
      nothing: empty('There are no experiments here. One begins with', 'kubectl apply -f experiment.yaml'),
      columns: [
        {name: 'name', title: 'Name', value: row => row.name},
        {name: 'namespace', title: 'Namespace', value: row => row.namespace},
        {name: 'state', title: 'State', value: row => row.state, cell: row => chip(row.state)},
        {name: 'trials', title: 'Trials', value: trialsDone, cell: row => h('span', {style: {display: 'inline-grid', width: '11rem', 'vertical-align': 'middle'}},
          h('span', {class: 'small'}, trialsDone(row) + (row.maxTrialCount ? ' of ' + row.maxTrialCount : '') + ', ' + (row.counts?.trialsRunning ?? 0) + ' running'),
          row.maxTrialCount && bar(trialsDone(row) / row.maxTrialCount, row.name + ': trials'))},
        {name: 'objective', title: 'Objective', value: row => (isMaximized(row) ? '↑ ' : '↓ ') + objectiveName(row)},
        {name: 'best', title: 'Best', isNumber: true, value: bestOf, cell: row => number(bestOf(row))},
        {name: 'algorithm', title: 'Algorithm', value: row => row.algorithm?.algorithmName},
        {name: 'lasted', title: 'Runs for', isNumber: true, value: lasted, cell: row => duration(lasted(row))},
        {name: 'created', title: 'Age', isNumber: true, value: row => row.created, cell: row => ago(row.created)},
      ],
    });
    const problem = h('p', {class: 'problem', hidden: true});
    const element = h('div', {class: 'stack'}, h('div', {class: 'head'}, h('h1', {}, 'Experiments'),
      h('div', {class: 'actions'}, rights['create experiments'] ? h('a', {class: 'button main', href: '#/new'}, 'New experiment') : h('span', {class: 'soft small'}, 'You may look, not change'))),
    problem, h('section', {class: 'card flush'}, table.element));
    return {element, update(live) {
      problem.hidden = !live.errors.experiments;
      problem.textContent = live.errors.experiments ?? '';
      table.set(live.all('experiments').map(row => ({...row, href: experimentHref(row)})));
    }};
  },
};

// What all views of one experiment share.
class Study {
  constructor(open) {
    this.open = open;
    this.all = [];
    this.shown = [];
    this.axes = [];
    this.experiment = {};
  }

  set(experiment, rows, filter) {
    this.experiment = experiment;
    this.objective = objectiveName(experiment);
    this.isMaximized = isMaximized(experiment);
    this.metrics = metricNames(experiment);
    const isUsed = row => row.state !== 'Failed' && row.state !== 'Killed' && row.state !== 'MetricsUnavailable';
    this.all = rows.sort((a, b) => (a.number < 0) - (b.number < 0) || a.number - b.number || (a.created ?? 0) - (b.created ?? 0));
    this.all.forEach((row, i) => {
      row.order = row.number >= 0 ? row.number : i;
      row.value = isUsed(row) ? metricOf(experiment, row, this.objective) : undefined;
      row.violation = row.value === undefined ? 0 : violation(experiment, row);
    });
    this.axes = (experiment.parameters ?? []).map(({name, space, type}) => axisOf(name, this.all.map(row => row.values[name]), space, type));
    this.refilter(filter);
  }

  field(trial, name) {
    if (name in trial.values) return trial.values[name];
    if (name === 'state' || name === 'name') return trial[name];
    if (name === 'number') return trial.order;
    if (name === 'duration') return lasted(trial);
    return this.metric(trial, name);
  }

  refilter(text) {
    const keeps = filterOf(text, (trial, name) => this.field(trial, name));
    this.shown = text ? this.all.filter(keeps) : this.all;
    this.best = undefined;
    for (const trial of this.shown) {
      if (trial.value !== undefined && !trial.violation && (this.best === undefined || (this.isMaximized ? trial.value > this.best.value : trial.value < this.best.value))) this.best = trial;
    }
  }

  metric(trial, name) { return metricOf(this.experiment, trial, name); }
  metricAxes() { return this.metrics.map(name => axisOf(name, this.shown.map(trial => this.metric(trial, name)))); }
}

const VIEWS = [['overview', 'Overview'], ['trials', 'Trials'], ['parallel', 'Parallel'], ['slices', 'Slices'], ['contour', 'Contour'], ['curves', 'Curves'], ['pareto', 'Pareto'], ['events', 'Events'], ['yaml', 'YAML']];
const PAUSE = 250;  // between two looks at what may be thousands of trials

export const experiment = {
  title: state => state.parts[2],
  kinds: () => ['experiments', 'trials', 'pods', 'events'],
  query: state => ({namespace: state.parts[1], experiment: state.parts[2], object: state.parts[2]}),
  make(state, rights) { return new ExperimentPage(state, rights); },
};

class ExperimentPage {
  constructor(state, rights) {
    Object.assign(this, {state, rights, namespace: state.parts[1], name: state.parts[2]});
    this.study = new Study(trial => this.open(trial));
    this.marks = new Set((state.get('compare') ?? '').split(',').filter(Boolean));
    this.head = h('div', {class: 'head'});
    this.problem = h('p', {class: 'problem', hidden: true});
    this.tiles = h('dl', {class: 'tiles', style: {margin: 0}});
    this.tabBar = h('div');
    this.filter = h('input', {type: 'search', value: state.get('filter') ?? '', placeholder: 'Filter: lr<0.01 optimizer=adam running', 'aria-label': 'Filter of trials', spellcheck: 'false',
      on: {input: () => this.refilter()}});
    this.count = h('span', {class: 'soft small', role: 'status'});
    this.body = h('div', {role: 'tabpanel', class: 'stack'});
    this.side = h('aside', {class: 'side', 'aria-label': 'Trial', hidden: true});
    this.split = h('div', {class: 'split'}, this.body, this.side);
    this.filterRow = h('div', {class: 'row'}, h('div', {style: {flex: '1 1 18rem', display: 'grid'}}, this.filter), this.count);
    this.element = h('div', {class: 'stack'}, this.head, this.problem, this.tiles, this.tabBar, this.filterRow, this.split);
    this.cards = [];
    this.element.addEventListener('keydown', event => {
      if (event.key === 'Escape' && this.panel) this.close();
    });
  }

  stop() {
    clearTimeout(this.timer);
    this.panel?.stop();
  }

  update(live, kinds) {
    this.live = live;
    this.changed = new Set([...(this.changed ?? []), ...kinds]);
    // Thousands of trials arrive together: they are looked at together.
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.renew();
    }, this.isBegun ? PAUSE : 0);
  }

  renew() {
    const kinds = this.changed;
    this.changed = new Set();
    const live = this.live;
    this.isWhole = live.whole.has('trials');
    const row = live.all('experiments').find(each => each.namespace === this.namespace && each.name === this.name);
    if (row) this.study.set(row, live.all('trials').filter(trial => trial.experiment === this.name), this.filter.value.trim());
    this.showHead(row);
    if (!row) return;
    if (!this.isBegun) {
      this.isBegun = true;
      this.show();
      const wanted = this.state.get('trial');
      const trial = wanted && this.study.all.find(each => each.name === wanted);
      if (trial) this.open(trial);
    } else {
      if (this.tab === 'events' && kinds.has('events')) this.show();
      this.repaint();
    }
    if (this.wanted === undefined && this.state.get('trial') && !this.panel) {
      const trial = this.study.all.find(each => each.name === this.state.get('trial'));
      if (trial) this.open(trial);
    }
    this.panel?.update(this.study.all.find(each => each.key === this.panel.key), live);
  }

  showHead(row) {
    const {study, rights} = this;
    keepFocus(this.head, () => fill(this.head, h('p', {class: 'crumb'}, h('a', {href: '#/experiments'}, 'Experiments'), ' / ' + this.namespace), h('h1', {}, this.name),
      row ? [chip(row.state), h('span', {class: 'soft'}, row.algorithm?.algorithmName)] : this.live.whole.has('experiments') && h('span', {class: 'soft'}, 'is not there (any more)'),
      row && h('div', {class: 'actions'},
        rights['create experiments'] && h('a', {class: 'button', href: '#/new?from=' + encodeURIComponent('Experiment/' + this.namespace + '/' + this.name)}, 'Clone'),
        rights['delete experiments'] && h('button', {type: 'button', class: 'danger', 'data-focus': 'delete', on: {click: async () => {
          if (!await confirmed('Delete experiment ' + this.name + ' and its ' + study.all.length + ' trials?', 'Delete')) return;
          await write('/api/delete', {kind: 'Experiment', namespace: this.namespace, name: this.name}).then(() => { location.hash = '#/experiments'; }, failed);
        }}}, 'Delete'))));
    this.filterRow.hidden = !row || this.tab === 'events' || this.tab === 'yaml';
    this.problem.hidden = row?.state !== 'Failed';
    if (!row) return;
    this.problem.textContent = row.message + (study.all.some(trial => trial.lastOutput) ? '. A failed trial, opened from the table, tells what it printed last.' : '');
    const counts = row.counts ?? {};
    const lost = (counts.trialsFailed ?? 0) + (counts.trialMetricsUnavailable ?? 0);
    fill(this.tiles, tile('Best ' + study.objective, number(study.best?.value), study.best ? 'trial ' + study.best.order : ''),
      tile('Trials ended', trialsDone(row), row.maxTrialCount ? 'of ' + row.maxTrialCount : ''), tile('Running', counts.trialsRunning ?? 0, row.parallelTrialCount ? 'of ' + row.parallelTrialCount : ''),
      tile('Stopped early', counts.trialsEarlyStopped ?? 0), tile('Failed', lost), tile('Runs for', duration(lasted(row))));
    this.count.textContent = this.counted();
  }

  // How many trials are shown; where there are none, why.
  counted() {
    const {study, live} = this;
    if (!this.isWhole) return 'loading…';
    if (live.errors.trials) return live.errors.trials;
    if (!study.all.length) return 'No trial has begun yet.';
    const known = new Set([...Object.keys(study.all[0].values), ...study.axes.map(axis => axis.name), ...study.metrics, 'state', 'name', 'number', 'duration']);
    const unknown = namesIn(this.filter.value).find(name => !known.has(name));
    const count = study.shown.length === study.all.length ? study.all.length + ' trials' : study.shown.length + ' of ' + study.all.length + ' trials';
    return unknown ? count + ': nothing is called ' + unknown : count;
  }

  refilter() {
    this.state.set('filter', this.filter.value.trim());
    this.study.refilter(this.filter.value.trim());
    this.count.textContent = this.counted();
    this.repaint();
  }

  // Words for what was marked on an axis, in place of earlier words about it.
  brush(axis, low, high, from, to) {
    const others = this.filter.value.split(/\s+/).filter(word => word && !(word.startsWith(axis.name) && /^[<>=!]/.test(word.slice(axis.name.length))));
    let words;
    if (axis.choices) {
      const within = axis.choices.filter(choice => axis.place(choice) >= from - 0.05 && axis.place(choice) <= to + 0.05);
      words = within.length === 1 ? [axis.name + '=' + within[0]] : within.length ? axis.choices.filter(choice => !within.includes(choice)).map(choice => axis.name + '!=' + choice) : [];
    } else {
      words = [axis.name + '>=' + +low.toPrecision(3), axis.name + '<=' + +high.toPrecision(3)];
    }
    this.filter.value = [...others, ...words].join(' ');
    this.refilter();
    say(this.count.textContent);
  }

  show() {
    this.tab = VIEWS.some(([name]) => name === this.state.get('view')) ? this.state.get('view') : 'overview';
    fill(this.tabBar, tabs('Of this experiment', VIEWS, this.tab, next => {
      this.state.set('view', next);
      this.show();
    }));
    this.body.setAttribute('aria-labelledby', 'tab-' + this.tab);
    this.filterRow.hidden = this.tab === 'events' || this.tab === 'yaml';
    this.cards = this.make(this.tab);
    fill(this.body, this.cards.map(each => each.element));
    this.repaint();
  }

  repaint() {
    for (const each of this.cards) each.update?.();
  }

  make(tab) {
    const {study} = this;
    switch (tab) {
      case 'trials': return [this.trials()];
      case 'parallel': return [parallelCard(study, (...words) => this.brush(...words))];
      case 'slices': return [slicesCards(study)];
      case 'contour': return [contourCard(study)];
      case 'curves': return [curvesCards(study)];
      case 'pareto': return [paretoCard(study)];
      case 'events': return [{element: card('Events', eventList(this.live))}];
      case 'yaml': return [{element: card('YAML', objectText('Experiment', this.namespace, this.name))}];
      default: {
        const shown = [historyCard(study), importanceCard(study), this.bestCard()];
        return [{element: h('div', {class: 'grid'}, h('div', {style: {'grid-column': '1 / -1'}}, shown[0].element), shown[1].element, shown[2].element), update: () => shown.forEach(each => each.update())}];
      }
    }
  }

  bestCard() {
    const facts = h('dl', {class: 'facts'});
    const element = card('Best trial', facts);
    return {element, update: () => {
      const {best, metrics} = this.study;
      if (!best) return fill(facts, h('dd', {class: 'soft'}, 'No trial has ended yet.'));
      keepFocus(facts, () => fill(facts, h('dt', {}, 'Trial'), h('dd', {}, h('button', {type: 'button', class: 'plain', 'data-focus': 'best', style: {color: 'var(--accent)'}, on: {click: () => this.open(best)}}, best.name)),
        metrics.map(name => [h('dt', {}, name), h('dd', {}, number(this.study.metric(best, name)))]),
        Object.entries(best.values).map(([name, value]) => [h('dt', {}, name), h('dd', {}, h('strong', {}, number(value)))])));
    }};
  }

  trials() {
    const {study, state} = this;
    const parameters = study.experiment.parameters ?? [];
    const nothing = h('p', {class: 'empty'});
    const table = this.table = new Table({
      label: 'Trials', sort: state.get('sort') ?? (study.isMaximized ? '-' : '') + study.objective, sorted: sort => state.set('sort', sort), open: row => this.open(row),
      marks: this.marks, marked: (key, on) => this.mark(key, on), nothing,
      columns: [
        {name: 'number', title: 'Trial', value: row => row.order, cell: row => (row.number >= 0 ? '#' + row.order : 'copy') + '  ' + row.name},
        {name: 'state', title: 'State', value: row => row.state, cell: row => chip(row.state)},
        ...study.metrics.map(name => ({name, title: name, isNumber: true, value: row => study.metric(row, name), cell: row => number(study.metric(row, name))})),
        ...parameters.map(({name, type}) => ({name, title: name, isNumber: type !== 'categorical', value: row => row.values[name], cell: row => number(row.values[name])})),
        {name: 'duration', title: 'Ran for', isNumber: true, value: lasted, cell: row => duration(lasted(row))},
      ],
    });
    const groupBy = h('select', {'aria-label': 'Group by', on: {change: event => {
      state.set('group', event.target.value);
      update();
    }}}, h('option', {value: ''}, 'no groups'), ['state', ...study.axes.map(axis => axis.name)].map(name => h('option', {value: name, selected: name === state.get('group')}, 'by ' + name)));
    const panel = h('div');
    const update = () => {
      const group = state.get('group');
      table.current = this.panel?.key;
      nothing.textContent = study.all.length ? 'No trial is like that.' : this.counted();
      table.set(study.shown, group ? row => this.groupName(row, group) : undefined, rows => this.groupCells(rows));
      const marked = study.all.filter(trial => this.marks.has(trial.key));
      const now = marked.map(trial => trial.key + trial.state).join();
      if (this.compared !== now) {
        this.compared = now;
        fill(panel, marked.length > 1 && comparePanel(study, marked, () => {
          this.marks.clear();
          state.set('compare', '');
          update();
        }));
      }
    };
    this.compared = undefined;
    this.updateTrials = update;
    return {element: h('div', {class: 'stack'}, h('section', {class: 'card flush'}, h('div', {class: 'bars'}, h('h2', {}, 'Trials'), groupBy, h('span', {class: 'soft small'}, 'Mark two or more to compare them')), table.element), panel), update};
  }

  // Numbers fall into five parts of their axis.
  groupName(row, name) {
    if (name === 'state') return row.state;
    const axis = this.study.axes.find(each => each.name === name);
    if (!axis || axis.choices) return row.values[name];
    const part = Math.min(4, Math.max(0, Math.floor((axis.place(row.values[name]) ?? 0) * 5)));
    return name + ' ' + number(axis.label(part / 5)) + ' to ' + number(axis.label((part + 1) / 5));
  }

  groupCells(rows) {
    const values = rows.map(row => row.value).filter(value => value !== undefined);
    if (!values.length) return {};
    const best = values.reduce((a, b) => (this.study.isMaximized ? a > b : a < b) ? a : b);
    return {[this.study.objective]: 'best ' + number(best), state: 'mean ' + number(values.reduce((a, b) => a + b, 0) / values.length)};
  }

  mark(key, on) {
    if (on) this.marks.add(key);
    else this.marks.delete(key);
    this.state.set('compare', [...this.marks].join(','));
    this.updateTrials();
  }

  open(trial) {
    this.panel?.stop();
    this.opener = document.activeElement;
    this.state.set('trial', trial.name);
    this.panel = new TrialPanel(this.study, trial, this.live, this.rights, () => this.close());
    fill(this.side, this.panel.element);
    this.side.hidden = false;
    this.split.classList.add('open');
    this.updateTrials?.();
    this.panel.focus();
  }

  close() {
    this.panel.stop();
    this.panel = undefined;
    this.side.hidden = true;
    this.split.classList.remove('open');
    this.state.set('trial', '');
    this.updateTrials?.();
    this.opener?.focus?.();
  }
}
