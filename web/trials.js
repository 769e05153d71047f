// SPDX-License-Identifier: Apache-2.0
// One trial beside its experiment, and several of them side by side.
import {card, chip, clock, confirmed, duration, fill, h, icon, lasted, number, say} from './dom.js';
import {write} from './connection.js';
import {failed, objectText, podsOf} from './jobs.js';
import {LogView} from './logs.js';
import {colourOf, linesPlot} from './plots.js';
import {compareCurves} from './experiment_plots.js';

export class TrialPanel {
  constructor(study, trial, live, rights, close) {
    Object.assign(this, {study, rights, live, key: trial.key, trial});
    this.title = h('h2', {tabindex: -1, class: 'wrap'}, 'Trial ' + trial.order);
    this.state = h('span');
    this.facts = h('dl', {class: 'facts'});
    this.actions = h('div', {class: 'row'});
    this.message = h('p', {class: 'soft small wrap'});
    this.output = h('div', {class: 'stack close'});
    this.plots = h('div', {class: 'stack close'});
    this.log = h('details', {on: {toggle: () => this.toggleLog()}}, h('summary', {}, 'Log'));
    this.text = h('details', {on: {toggle: () => {
      if (this.text.open && !this.text.querySelector('pre')) this.text.append(objectText('Trial', trial.namespace, trial.name));
    }}}, h('summary', {}, 'YAML'));
    this.element = h('section', {class: 'card stack close'}, h('header', {class: 'line'}, this.title, this.state,
      h('button', {type: 'button', class: 'icon end', 'aria-label': 'Close this trial', on: {click: close}}, icon('close'))),
    h('p', {class: 'mono wrap'}, trial.name), this.message, this.output, this.facts, this.actions, this.plots, this.log, this.text);
    this.update(trial, live);
  }

  focus() {
    this.title.focus();
  }

  stop() {
    this.view?.stop();
  }

  update(trial, live) {
    if (!trial) return fill(this.state, h('span', {class: 'soft'}, 'is not there any more'));
    Object.assign(this, {trial, live});
    const {study, rights} = this;
    fill(this.state, chip(trial.state));
    this.message.textContent = trial.message ?? '';
    fill(this.output, trial.lastOutput && [h('p', {class: 'soft small'}, 'The last that it printed:'), h('pre', {class: 'text wrap', style: {'white-space': 'pre-wrap'}, tabindex: 0, 'aria-label': 'The last output of trial ' + trial.order}, trial.lastOutput)]);
    const facts = [...study.metrics.map(name => [name, number(study.metric(trial, name))]), ...Object.entries(trial.values).map(([name, value]) => [name, number(value)]),
      ['Began', clock(trial.started)], ['Ran for', duration(lasted(trial))], ...(trial.parent !== undefined ? [['Goes on from', 'trial ' + trial.parent]] : [])];
    fill(this.facts, facts.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
    const isOver = trial.ended !== undefined;
    const now = isOver + String(trial.state);
    if (now !== this.known) {
      this.known = now;
      fill(this.actions,
        !isOver && rights['stop trials'] && h('button', {type: 'button', on: {click: () => this.stopTrial()}}, 'Stop'),
        rights['create trials'] && h('a', {class: 'button', href: '#/new?from=' + encodeURIComponent('Trial/' + trial.namespace + '/' + trial.name)}, 'Clone'),
        isOver && rights['delete trials'] && h('button', {type: 'button', class: 'danger', on: {click: () => this.remove()}}, 'Delete'));
    }
    this.drawCurves();
  }

  drawCurves() {
    const curves = Object.entries(this.trial.curves ?? {});
    if (curves.length !== this.plots.children.length) {
      this.drawn = curves.map(([name], i) => linesPlot(name + ' of trial ' + this.trial.order, 170, () => [{name, points: this.trial.curves?.[name] ?? [], colour: colourOf(i)}], {xName: 'report', yName: name}));
      fill(this.plots, this.drawn.map(plot => plot.element));
    }
    this.drawn?.forEach(plot => plot.paint());
  }

  toggleLog() {
    this.view?.stop();
    this.view = undefined;
    if (!this.log.open) return;
    const pod = podsOf(this.live, this.trial.name, this.trial.namespace)[0];
    this.log.querySelector(':scope > :not(summary)')?.remove();
    if (!pod) return this.log.append(h('p', {class: 'soft small'}, 'Its pod is gone: a trial’s pods go with its end, unless the template says retain.'));
    this.view = new LogView(pod, pod.containers[0]);
    this.log.append(this.view.element);
  }

  async stopTrial() {
    if (!await confirmed('Stop trial ' + this.trial.order + '? What it runs ends; its record stays.', 'Stop')) return;
    await write('/api/stop', {namespace: this.trial.namespace, name: this.trial.name}).then(() => say('Trial ' + this.trial.order + ' is stopped'), failed);
  }

  async remove() {
    if (!await confirmed('Delete the record of trial ' + this.trial.order + '? It stays deleted and counts as a try.', 'Delete')) return;
    await write('/api/delete', {kind: 'Trial', namespace: this.trial.namespace, name: this.trial.name}).catch(failed);
  }
}

// A column a trial; what differs stands out.
export function comparePanel(study, trials, clear) {
  const names = [...new Set(trials.flatMap(trial => Object.keys(trial.values)))];
  const lines = [['State', trial => trial.state], ...study.metrics.map(name => [name, trial => number(study.metric(trial, name))]), ...names.map(name => [name, trial => number(trial.values[name])]),
    ['Ran for', trial => duration(lasted(trial))]];
  const plots = compareCurves(study, trials);
  const element = card('Compare ' + trials.length + ' trials', [
    h('div', {class: 'scroll'}, h('table', {'aria-label': 'Trials side by side'}, h('thead', {}, h('tr', {}, h('td'), trials.map((trial, i) => h('th', {scope: 'col', class: 'num'}, h('span', {style: {color: plots.length ? colourOf(i) : ''}}, '#' + trial.order))))),
      h('tbody', {}, lines.map(([title, get]) => {
        const texts = trials.map(get);
        const isSame = texts.every(text => text === texts[0]);
        return h('tr', {}, h('th', {scope: 'row'}, title), texts.map(text => h('td', {class: 'num'}, isSame ? h('span', {class: 'soft'}, text) : h('strong', {}, text))));
      })))),
    h('div', {class: 'small-plots', style: {'margin-top': '1rem'}}, plots.map(plot => plot.element))], h('button', {type: 'button', on: {click: clear}}, 'Clear'));
  return element;
}
