// SPDX-License-Identifier: Apache-2.0
// A new experiment: a form that writes the text, and the text itself, which counts. The server checks it as `kubectl apply` does.
import {card, fill, h, icon, say} from './dom.js';
import {read, write} from './connection.js';
import {experimentHref, jobHref} from './overview.js';

const ALGORITHMS = ['tpe', 'bayesianoptimization', 'cmaes', 'random', 'sobol', 'grid', 'hyperband', 'asha', 'bohb', 'pbt', 'annealing', 'nsga2'];
const TYPES = [['double', 'number'], ['log', 'log scale'], ['int', 'whole number'], ['categorical', 'one of these']];

// JSON texts are YAML texts.
const quoted = text => /^[A-Za-z][A-Za-z0-9_./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : JSON.stringify(text);

// A placeholder's own name: letters and digits.
const reference = name => name.replace(/^-+/, '').replace(/[^A-Za-z0-9]+(.)?/g, (_, letter) => (letter ?? '').toUpperCase()) || 'value';

function space({type, values}) {
  if (type === 'categorical') return '{list: [' + values.split(',').map(word => quoted(word.trim())).join(', ') + ']}';
  const [min, max] = values.split('..').map(word => word.trim());
  return '{min: ' + JSON.stringify(min ?? '') + ', max: ' + JSON.stringify(max ?? '') + (type === 'log' ? ', distribution: logUniform' : '') + '}';
}

export function textOfForm(form) {
  const parameters = form.parameters.filter(each => each.name);
  const command = form.command.replace(/\{([^{}]+)\}/g, (whole, name) => parameters.some(each => each.name === name) ? '${trialParameters.' + reference(name) + '}' : whole);
  const extra = form.additional.split(',').map(word => word.trim()).filter(Boolean);
  return [
    'apiVersion: kubeflow.org/v1beta1', 'kind: Experiment', 'metadata:', '  name: ' + quoted(form.name), '  namespace: ' + quoted(form.namespace), 'spec:',
    '  objective:', '    type: ' + form.direction, ...(form.goal !== '' ? ['    goal: ' + form.goal] : []), '    objectiveMetricName: ' + quoted(form.metric),
    ...(extra.length ? ['    additionalMetricNames: [' + extra.map(quoted).join(', ') + ']'] : []), '  algorithm:', '    algorithmName: ' + form.algorithm,
    '  parallelTrialCount: ' + form.parallel, '  maxTrialCount: ' + form.most, '  maxFailedTrialCount: ' + form.failures, '  parameters:',
    ...parameters.flatMap(each => ['  - name: ' + quoted(each.name), '    parameterType: ' + (each.type === 'log' ? 'double' : each.type), '    feasibleSpace: ' + space(each)]),
    '  trialTemplate:', '    primaryContainerName: main', '    trialParameters:', ...parameters.map(each => '    - {name: ' + reference(each.name) + ', reference: ' + quoted(each.name) + '}'),
    '    trialSpec:', '      apiVersion: batch/v1', '      kind: Job', '      spec:', '        backoffLimit: 0', '        template:', '          spec:', '            restartPolicy: Never', '            containers:',
    '            - name: main', '              image: ' + quoted(form.image), '              command: [sh, -c, ' + JSON.stringify(command) + ']', ''].join('\n');
}

const FIRST = {
  name: 'search', namespace: 'default', metric: 'accuracy', direction: 'maximize', goal: '', additional: 'loss', algorithm: 'tpe', parallel: '3', most: '30', failures: '3', image: 'train:1',
  command: 'python train.py --lr={lr} --num-layers={num-layers} --optimizer={optimizer}',
  parameters: [{name: 'lr', type: 'log', values: '0.0001 .. 0.1'}, {name: 'num-layers', type: 'int', values: '2 .. 5'}, {name: 'optimizer', type: 'categorical', values: 'sgd, adam, ftrl'}],
};

export const create = {
  title: 'New experiment',
  kinds: () => [],
  make(state, rights) {
    const form = structuredClone(FIRST);
    form.namespace = state.get('ns') || 'default';
    const from = state.get('from');
    const text = h('textarea', {rows: 26, spellcheck: 'false', 'aria-label': 'The object in YAML', autocomplete: 'off', on: {input: () => {
      isEdited = true;
      byHand.hidden = Boolean(from);
    }}});
    const answer = h('div', {role: 'status', 'aria-live': 'polite'});
    let isEdited = false;
    // What somebody wrote is not written over; but who goes on with the form shall know.
    const byHand = h('p', {class: 'soft small row', hidden: true}, 'The text was changed by hand, so the form changes it no more.',
      h('button', {type: 'button', on: {click: () => {
        isEdited = false;
        renew();
      }}}, 'Write it from the form'));
    const renew = () => {
      byHand.hidden = !isEdited || Boolean(from);
      if (!isEdited) text.value = textOfForm(form);
    };
    const field = (title, name, more = {}) => h('label', {class: 'field'}, h('span', {}, title), more.choices
      ? h('select', {on: {change: event => set(name, event.target.value)}}, more.choices.map(choice => h('option', {value: choice, selected: choice === form[name]}, choice)))
      : h('input', {value: form[name], spellcheck: 'false', ...more, on: {input: event => set(name, event.target.value)}}));
    const set = (name, value) => {
      form[name] = value;
      renew();
    };
    const rows = h('div', {class: 'stack close'});
    const showRows = () => fill(rows, form.parameters.map((parameter, i) => h('div', {class: 'parameter'},
      h('label', {class: 'field'}, h('span', {}, 'Name'), h('input', {value: parameter.name, spellcheck: 'false', on: {input: event => change(i, 'name', event.target.value)}})),
      h('label', {class: 'field'}, h('span', {}, 'Is'), h('select', {on: {change: event => change(i, 'type', event.target.value)}}, TYPES.map(([value, title]) => h('option', {value, selected: value === parameter.type}, title)))),
      h('label', {class: 'field'}, h('span', {}, parameter.type === 'categorical' ? 'Values, with commas' : 'From .. to'), h('input', {value: parameter.values, spellcheck: 'false', on: {input: event => change(i, 'values', event.target.value)}})),
      h('button', {type: 'button', class: 'icon', 'aria-label': 'Remove parameter ' + parameter.name, on: {click: () => {
        form.parameters.splice(i, 1);
        showRows();
        renew();
      }}}, icon('close')))));
    const change = (i, name, value) => {
      form.parameters[i][name] = value;
      if (name === 'type') showRows();
      renew();
    };
    const send = async path => {
      fill(answer, h('p', {class: 'soft'}, 'asking the server…'));
      try {
        const done = await write(path, {text: text.value, namespace: form.namespace});
        const made = done.objects[0];
        if (path === '/api/check') {
          fill(answer, h('p', {class: 'fine'}, 'It would be accepted: ' + done.objects.map(each => each.kind + ' ' + each.namespace + '/' + each.name).join(', ')));
          return;
        }
        say('Created ' + made.name);
        const owner = /katib\.kubeflow\.org\/experiment: "?([^"\n]+)/.exec(text.value)?.[1];
        location.hash = made.kind === 'Experiment' ? experimentHref(made) : made.kind === 'Trial' && owner ? experimentHref({namespace: made.namespace, name: owner}) + '?view=trials&trial=' + encodeURIComponent(made.name)
          : made.kind === 'Trial' ? '#/experiments' : jobHref(made);
      } catch (error) {
        fill(answer, h('div', {class: 'problem'}, error.message, error.fields.length > 1 && h('ul', {}, error.fields.map(each => h('li', {}, h('strong', {}, each.field), ' ' + each.message)))));
      }
    };
    const buttons = h('div', {class: 'row'}, h('button', {type: 'button', on: {click: () => send('/api/check')}}, 'Check'),
      h('button', {type: 'button', class: 'main', disabled: !rights['create experiments'], on: {click: () => send('/api/create')}}, 'Create'),
      !rights['create experiments'] && h('span', {class: 'soft small'}, 'You may look, not create.'));
    const yaml = card('As YAML', [text, byHand, h('div', {style: {display: 'grid', gap: '.8rem', 'margin-top': '.8rem'}}, buttons, answer)]);
    const element = h('div', {class: 'stack'}, h('div', {class: 'head'}, h('h1', {}, from ? 'Clone ' + from.split('/').pop() : 'New experiment')));
    if (from) {
      const [kind, namespace, name] = from.split('/');
      isEdited = true;
      read('/api/object', {kind, namespace, name, copy: '1'}).then(found => { text.value = found.text; }, error => fill(answer, h('p', {class: 'problem'}, error.message)));
      element.append(yaml);
      return {element, update() {}};
    }
    showRows();
    renew();
    element.append(h('div', {class: 'grid'}, h('section', {class: 'card stack'},
      h('fieldset', {}, h('legend', {}, 'What is sought'), h('div', {class: 'fields'}, field('Name', 'name'), field('Namespace', 'namespace'), field('Metric', 'metric'), field('Direction', 'direction', {choices: ['maximize', 'minimize']}),
        field('Goal (may be empty)', 'goal', {inputmode: 'decimal'}), field('Other metrics', 'additional'))),
      h('fieldset', {}, h('legend', {}, 'How'), h('div', {class: 'fields'}, field('Algorithm', 'algorithm', {choices: ALGORITHMS}), field('Trials', 'most', {type: 'number', min: 1}), field('At once', 'parallel', {type: 'number', min: 1}), field('Failures allowed', 'failures', {type: 'number', min: 0}))),
      h('fieldset', {}, h('legend', {}, 'Parameters'), rows, h('div', {}, h('button', {type: 'button', on: {click: () => {
        form.parameters.push({name: '', type: 'double', values: '0 .. 1'});
        showRows();
        rows.lastElementChild.querySelector('input').focus();
      }}}, 'Add a parameter'))),
      h('fieldset', {}, h('legend', {}, 'What a trial runs'), field('Image', 'image'), field('Command, with {name} where a value goes', 'command'))), yaml));
    return {element, update() {}};
  },
};
