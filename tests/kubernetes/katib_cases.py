# SPDX-License-Identifier: Apache-2.0
"""Experiments for Katib's controller and ours, the fates of their trials' jobs, and what is compared of the outcome."""
import copy
import re

import differential_state

GRID = ['0.01', '0.02', '0.03', '0.04']
NOW = '2026-01-01T00:00:00Z'
CLOCK = {'startTime', 'completionTime', 'lastReconcileTime', 'lastTransitionTime', 'lastUpdateTime', 'runCompletionTime'}
# What is of no matter to who searches, or differs by nature.
SKIPPED = {'reported', 'lastOutput'}


def experiment(name, values=GRID, algorithm='grid', objective=(), template=(), **spec):
    """Over one parameter, whose values say what becomes of a trial."""
    space = {'name': 'lr', 'parameterType': 'discrete', 'feasibleSpace': {'list': list(values)}}
    container = {'name': 'main', 'image': 'train:1', 'command': ['train', '--lr=${trialParameters.learningRate}']}
    return {
        'apiVersion': 'kubeflow.org/v1beta1', 'kind': 'Experiment', 'metadata': {'name': name},
        'spec': {'objective': {'type': 'maximize', 'objectiveMetricName': 'accuracy', **dict(objective)},
                 'algorithm': {'algorithmName': algorithm}, 'parallelTrialCount': 2, 'maxTrialCount': len(values),
                 # Katib refuses more than there are trials.
                 'maxFailedTrialCount': min(3, spec.get('maxTrialCount', 3)), 'parameters': [space], 'metricsCollectorSpec': {'collector': {'kind': 'Push'}},
                 'trialTemplate': {
                     'primaryContainerName': 'main', 'trialParameters': [{'name': 'learningRate', 'reference': 'lr'}],
                     'trialSpec': {'apiVersion': 'batch/v1', 'kind': 'Job',
                                   'spec': {'template': {'spec': {'restartPolicy': 'Never', 'containers': [container]}}}},
                     **dict(template)},
                 **spec}}


def well(value):
    """Better with larger values, and once better than at the end."""
    return {'accuracy': [0.1, float(value) * 10 + 0.5, float(value) * 10]}


def all_cases():
    """(experiment, {value: fate}, steps): a fate is what a trial reports, 'fail', 'silent' (ends without a report) or 'run'
    (does not end); steps come after each other, as (verb, argument)."""
    good = {value: well(value) for value in GRID}
    two = {value: dict(well(value), loss=[3, 1, float(value)]) for value in GRID}
    more = GRID + ['0.05', '0.06']
    return [
        (experiment('all-good'), good, []),
        (experiment('one-at-a-time', parallelTrialCount=1), good, []),
        (experiment('labelled') | {'metadata': {'name': 'labelled', 'labels': {'team': 'vision'}, 'annotations': {'note': 'n'}}},
         good, []),
        (experiment('goal', objective={'goal': 0.75}, parallelTrialCount=1), good, []),
        (experiment('goal-at-once', objective={'goal': 0.1}, parallelTrialCount=1), good, []),
        (experiment('two-metrics', objective={'additionalMetricNames': ['loss']}), two, []),
        (experiment('least-loss', objective={'type': 'minimize', 'objectiveMetricName': 'loss',
                                             'additionalMetricNames': ['accuracy']}), two, []),
        (experiment('latest', objective={'metricStrategies': [{'name': 'accuracy', 'value': 'latest'}]}), good, []),
        (experiment('metric-of-no-trial', objective={'additionalMetricNames': ['f1']}), good, []),
        (experiment('no-number'), dict(good, **{'0.02': {'accuracy': ['nan', 0.4]}}), []),
        (experiment('one-fails'), dict(good, **{'0.02': 'fail'}), []),
        (experiment('all-fail', maxFailedTrialCount=2, parallelTrialCount=1), dict.fromkeys(GRID, 'fail'), []),
        (experiment('none-may-fail', maxFailedTrialCount=0, parallelTrialCount=1), dict.fromkeys(GRID, 'fail'), []),
        (experiment('one-is-silent', parallelTrialCount=1), dict(good, **{'0.02': 'silent'}), []),
        (experiment('retained', template={'retain': True}), good, []),
        (experiment('tried-all', maxTrialCount=6), good, []),
        (experiment('runs'), dict(good, **{'0.02': 'run'}), []),
        (experiment('grows', values=more, maxTrialCount=2, resumePolicy='LongRunning'), {value: well(value) for value in more},
         [('edit', {'maxTrialCount': 4})]),
        (experiment('never-again', values=more, maxTrialCount=2), {value: well(value) for value in more},
         [('edit', {'maxTrialCount': 4})]),
        (experiment('wider', parallelTrialCount=1), dict.fromkeys(GRID, 'run'), [('edit', {'parallelTrialCount': 3})]),
        (experiment('narrower', parallelTrialCount=3), dict.fromkeys(GRID, 'run'), [('edit', {'parallelTrialCount': 1})]),
        (experiment('trial-is-deleted', parallelTrialCount=1, maxTrialCount=3), dict.fromkeys(GRID, 'run'), [('delete', 'trials')]),
        (experiment('job-is-deleted', parallelTrialCount=1), dict.fromkeys(GRID, 'run'), [('delete', 'jobs')]),
    ]


def wrong_experiments():
    """(name, experiment), each wrong in one way."""
    def changed(name, path, value, base=None):
        item = copy.deepcopy(base or experiment('wrong'))
        at = item['spec']
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
        return name, item
    template = ('trialTemplate',)
    space = ('parameters', 0, 'feasibleSpace')
    yield changed('right', ('maxTrialCount',), 4)
    for field in ('objective', 'algorithm', 'parameters', 'trialTemplate'):
        yield changed('no-' + field, (field,), None)
    yield changed('no-metric', ('objective', 'objectiveMetricName'), None)
    yield changed('objective-of-no-type', ('objective', 'type'), None)
    yield changed('objective-of-another-type', ('objective', 'type'), 'best')
    yield changed('metric-twice', ('objective', 'additionalMetricNames'), ['accuracy'])
    yield changed('unknown-algorithm', ('algorithm', 'algorithmName'), 'magic')
    yield changed('no-algorithm-name', ('algorithm', 'algorithmName'), None)
    yield changed('unknown-early-stopping', ('earlyStopping',), {'algorithmName': 'magic'})
    yield changed('unknown-resume-policy', ('resumePolicy',), 'Sometimes')
    for field in ('maxTrialCount', 'parallelTrialCount', 'maxFailedTrialCount'):
        yield changed('negative-' + field, (field,), -1)
    yield changed('no-trials', ('maxTrialCount',), 0)
    yield changed('more-parallel-than-trials', ('parallelTrialCount',), 9)
    yield changed('more-failed-than-trials', ('maxFailedTrialCount',), 9)
    yield changed('parameter-of-another-type', ('parameters', 0, 'parameterType'), 'float')
    yield changed('list-of-a-double', ('parameters', 0, 'parameterType'), 'double')
    yield changed('no-feasible-space', space, None)
    yield changed('bounds-of-a-list', (*space, 'max'), '1')
    yield changed('empty-list', (*space, 'list'), [])
    yield changed('no-number-in-a-discrete-list', (*space, 'list'), ['a', 'b'])
    yield changed('bounds-that-cross', ('parameters', 0), {'name': 'lr', 'parameterType': 'double', 'feasibleSpace': {'min': '2', 'max': '1'}})
    yield changed('bounds-that-are-no-numbers', ('parameters', 0), {'name': 'lr', 'parameterType': 'int', 'feasibleSpace': {'min': 'a', 'max': 'b'}})
    yield changed('one-bound', ('parameters', 0), {'name': 'lr', 'parameterType': 'int', 'feasibleSpace': {'min': '1'}})
    yield changed('unknown-distribution', (*space, 'distribution'), 'even')
    yield changed('parameter-twice', ('parameters',), [experiment('wrong')['spec']['parameters'][0]] * 2)
    yield changed('no-primary-container', (*template, 'primaryContainerName'), None)
    yield changed('another-primary-container', (*template, 'primaryContainerName'), 'other')
    yield changed('no-trial-parameters', (*template, 'trialParameters'), None)
    yield changed('reference-to-nothing', (*template, 'trialParameters', 0, 'reference'), 'momentum')
    yield changed('parameter-that-is-not-used', (*template, 'trialParameters'), [{'name': name, 'reference': 'lr'} for name in ('learningRate', 'other')])
    yield changed('placeholder-of-nothing', (*template, 'trialParameters', 0, 'name'), 'rate')
    yield changed('no-template', (*template, 'trialSpec'), None)
    yield changed('template-of-no-kind', (*template, 'trialSpec', 'kind'), None)
    yield changed('template-with-a-name', (*template, 'trialSpec', 'metadata'), {'name': 'mine', 'namespace': 'other'})
    yield changed('custom-kind-without-conditions', (*template, 'trialSpec'), {
        'apiVersion': 'example.org/v1', 'kind': 'Run', 'spec': {'rate': '${trialParameters.learningRate}'}})
    yield changed('job-that-is-none', (*template, 'trialSpec', 'spec', 'template', 'spec', 'containers'), 'many')
    yield changed('unknown-collector', ('metricsCollectorSpec', 'collector', 'kind'), 'Magic')
    yield changed('file-without-a-path', ('metricsCollectorSpec',), {'collector': {'kind': 'File'}})
    yield changed('file-of-a-relative-path', ('metricsCollectorSpec',), {
        'collector': {'kind': 'File'}, 'source': {'fileSystemPath': {'path': 'log', 'kind': 'File'}}})
    yield changed('filter-without-groups', ('metricsCollectorSpec',), {
        'collector': {'kind': 'StdOut'}, 'source': {'filter': {'metricsFormat': ['a=b']}}})
    yield changed('json-with-a-filter', ('metricsCollectorSpec',), {
        'collector': {'kind': 'File'}, 'source': {'fileSystemPath': {'path': '/log', 'kind': 'File', 'format': 'JSON'},
                                                  'filter': {'metricsFormat': ['(a)=(b)']}}})
    yield changed('custom-collector-without-a-container', ('metricsCollectorSpec', 'collector', 'kind'), 'Custom')
    yield changed('unknown-field', ('maxTrials',), 4)


def ended_job(has_succeeded):
    kinds = ('SuccessCriteriaMet', 'Complete') if has_succeeded else ('FailureTarget', 'Failed')
    conditions = [{'type': kind, 'status': 'True', 'lastProbeTime': NOW, 'lastTransitionTime': NOW,
                   **({} if has_succeeded else {'reason': 'BackoffLimitExceeded', 'message': 'it failed too often'})} for kind in kinds]
    status = {'startTime': NOW, 'conditions': conditions}
    return dict(status, succeeded=1, completionTime=NOW) if has_succeeded else dict(status, failed=1)


def value_of(trial):
    assignments = trial['spec'].get('parameterAssignments') or [{'value': '?'}]
    return assignments[0]['value']


def flat_conditions(conditions, path, into):
    into[path] = ' '.join('%s=%s' % (each['type'], each['status']) for each in conditions)
    for each in conditions:
        for field in ('reason', 'message'):
            into['%s.%s.%s' % (path, each['type'], field)] = each.get(field)
        into['%s.%s.times' % (path, each['type'])] = ' '.join(sorted(CLOCK & set(each)))


def flat_status(status, path, names, into):
    flat_conditions(status.get('conditions') or [], path + '.conditions', into)
    for key, value in status.items():
        if key in CLOCK:
            into['%s.%s' % (path, key)] = 'a time' if value else 'null'
        elif key.endswith('TrialList'):
            into['%s.%s' % (path, key)] = ' '.join(sorted(names[each] if each in names else 'gone' for each in value or []))
        elif key not in SKIPPED | {'conditions', 'suggestions'}:
            differential_state.flatten(by_name(value), '%s.%s' % (path, key), into)


def by_name(value):
    """Lists whose items have names are compared as maps, and lists of names in order."""
    if isinstance(value, list) and value and all(isinstance(each, dict) and 'name' in each for each in value):
        return {each['name']: by_name(each) for each in value}
    if isinstance(value, dict):
        return {key: by_name(each) for key, each in value.items()}
    return sorted(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value


def flat_meta(item, path, into):
    meta = {key: value for key, value in item['metadata'].items() if key not in differential_state.OWN}
    meta['ownerReferences'] = [{key: value for key, value in owner.items() if key != 'uid'}
                               for owner in meta.get('ownerReferences', [])]
    # The server's own, of jobs.
    meta['labels'] = {key: value for key, value in meta.get('labels', {}).items() if not key.endswith(('controller-uid', 'job-name'))}
    into[path] = 'terminating' if item['metadata'].get('deletionTimestamp') else 'there'
    differential_state.flatten(meta, path, into)


def flat(found, name):
    """Of {kind: [object]} what there is of the experiment; trials are told apart by their value."""
    into = {}
    names = {trial['metadata']['name']: 'trial-' + value_of(trial).replace('.', '_') for trial in found['trials']}
    for item in found['experiments']:
        flat_meta(item, 'experiment', into)
        flat_status(item.get('status', {}), 'status', names, into)
    for item in found['suggestions']:
        flat_meta(item, 'suggestion', into)
        differential_state.flatten(by_name(item['spec']), 'suggestion.spec', into)
        flat_status(item.get('status', {}), 'suggestion.status', names, into)
    for item in found['trials']:
        path = names[item['metadata']['name']]
        flat_meta(item, path, into)
        differential_state.flatten(by_name(item['spec']), path + '.spec', into)
        flat_status(item.get('status', {}), path + '.status', names, into)
    for item in found['jobs']:
        path = 'job-of-' + names.get(item['metadata']['name'], 'nobody')
        flat_meta(item, path, into)
        into[path + '.command'] = ' '.join(item['spec']['template']['spec']['containers'][0]['command'])
    for kind in ('deployments', 'services'):
        for item in found[kind]:
            into['%s.%s' % (kind, item['metadata']['name'])] = 'there'

    def neutral(text):
        for each, stands_for in names.items():
            text = text.replace(each, stands_for)
        text = re.sub(r'\b(ours|theirs)\b', 'NAMESPACE', text)
        return re.sub(r'\b%s\b' % re.escape(name), 'EXPERIMENT', text)
    return {neutral(key): neutral(value) if isinstance(value, str) else value for key, value in into.items()}


def differences(ours, theirs):
    """(where, here, there); of an object that only one has, that alone."""
    absent = {where for where, value in {**theirs, **ours}.items()
              if value in ('there', 'terminating') and (where in ours) != (where in theirs)}
    found = []
    for where in sorted(set(ours) | set(theirs)):
        is_told = where in absent or not any(where.startswith(each + '.') for each in absent)
        if is_told and ours.get(where) != theirs.get(where):
            found.append((where, ours.get(where), theirs.get(where)))
    return found
