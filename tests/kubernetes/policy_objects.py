# SPDX-License-Identifier: Apache-2.0
"""Jobs with rules, definitions of kinds and leases for refused_test.py, in the form of refused_objects.py."""
from more_refused_objects import LEASE, LEASES
from refused_objects import BATCH, CORE, JOB, PLAIN, changed

DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
INDEXED = {'spec.completionMode': 'Indexed', 'spec.completions': 4, 'spec.parallelism': 4}


def rules(*all_of, **more):
    return {'spec.podFailurePolicy': {'rules': list(all_of)}, **{key.replace('__', '.'): value for key, value in more.items()}}


def codes(operator, *values, action='FailJob', **more):
    return {'action': action, 'onExitCodes': dict(more, operator=operator, values=list(values))}


def condition(action='FailJob', **fields):
    return {'action': action, 'onPodConditions': [fields]}


def reaches(*all_of):
    return dict(INDEXED, **{'spec.successPolicy': {'rules': list(all_of)}})


JOBS = [
    ('good-rules', rules(codes('In', 1, 42))),
    ('good-rules-condition', rules(condition('Count', type='DisruptionTarget'))),
    ('action', rules(codes('In', 1, action='Odd'))),
    ('no-action', rules({'onExitCodes': {'operator': 'In', 'values': [1]}})),
    ('both', rules(dict(codes('In', 1), **condition(type='a', status='True')))),
    ('neither', rules({'action': 'FailJob'})),
    ('in-zero', rules(codes('In', 0))),
    ('good-not-in-zero', rules(codes('NotIn', 0))),
    ('operator', rules(codes('Has', 1))),
    ('no-operator', rules({'action': 'FailJob', 'onExitCodes': {'values': [1]}})),
    ('no-values', rules(codes('In'))),
    ('order', rules(codes('In', 2, 1))),
    ('twice', rules(codes('In', 1, 1))),
    ('many-values', rules(codes('In', *range(1, 257)))),
    ('container', rules(codes('In', 1, containerName='nope'))),
    ('condition', rules(condition(type='A B', status='True'))),
    ('condition-status', rules(condition(type='a', status='Maybe'))),
    ('fail-index', rules(codes('In', 1, action='FailIndex'))),
    ('many-rules', rules(*[codes('In', 1)] * 21)),
    ('on-failure', rules(codes('In', 1), spec__template__spec__restartPolicy='OnFailure')),
    ('replaced-early', rules(codes('In', 1), spec__podReplacementPolicy='TerminatingOrFailed')),
    ('good-per-index', dict(INDEXED, **{'spec.backoffLimitPerIndex': 1})),
    ('per-index-negative', dict(INDEXED, **{'spec.backoffLimitPerIndex': -1})),
    ('failed-indexes', {'spec.maxFailedIndexes': 1}),
    ('failed-indexes-many', dict(INDEXED, **{'spec.backoffLimitPerIndex': 1, 'spec.maxFailedIndexes': 5})),
    ('good-success', reaches({'succeededIndexes': '0-2', 'succeededCount': 2})),
    ('success-none', reaches()),
    ('success-empty', reaches({})),
    ('success-large', reaches({'succeededIndexes': '0-9'})),
    ('success-letter', reaches({'succeededIndexes': 'a'})),
    ('success-order', reaches({'succeededIndexes': '2,1'})),
    ('success-count', reaches({'succeededCount': 9})),
    ('success-count-of-indexes', reaches({'succeededIndexes': '0-1', 'succeededCount': 3})),
    ('success-many', reaches(*[{'succeededCount': 1}] * 21)),
]


def definition(number, changes=None, **version):
    """Each of a group of its own, so that none is in the way of another."""
    group = 'g%d.example.com' % number
    plain = {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': 'foos.' + group},
             'spec': {'group': group, 'scope': 'Namespaced',
                      'names': {'plural': 'foos', 'singular': 'foo', 'kind': 'Foo', 'listKind': 'FooList'},
                      'versions': [dict({'name': 'v1', 'served': True, 'storage': True,
                                         'schema': {'openAPIV3Schema': {'type': 'object'}}}, **version)]}}
    return changed(plain, changes or {})


def holds(**field):
    return {'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {'a': field}}}}


def root(**schema):
    return {'schema': {'openAPIV3Schema': schema}}


def column(**fields):
    return {'additionalPrinterColumns': [fields]}


def scale(replicas, status):
    return {'subresources': {'scale': {'specReplicasPath': replicas, 'statusReplicasPath': status}}}


KINDS = [
    ('good-kind', {}, {}),
    ('version-name', {}, {'name': 'V1'}),
    ('good-scale', {}, scale('.spec.replicas', '.status.replicas')),
    ('scale-path', {}, scale('spec.replicas', '.status.replicas')),
    ('scale-status', {}, scale('.spec.replicas', '.spec.replicas')),
    ('scale-nothing', {}, {'subresources': {'scale': {}}}),
    ('good-column', {}, column(name='A', type='string', jsonPath='.spec.a')),
    ('column-type', {}, column(name='A', type='odd', jsonPath='.spec.a')),
    ('column-format', {}, column(name='A', type='string', format='odd', jsonPath='.spec.a')),
    ('column-path', {}, column(name='A', type='string', jsonPath='spec.a')),
    ('column-name', {}, column(type='string', jsonPath='.spec.a')),
    ('column-no-path', {}, column(name='A', type='string')),
    ('no-schema', {}, {'schema': None}),
    ('root-type', {}, root(properties={})),
    ('root-string', {}, root(type='string')),
    ('root-nullable', {}, root(type='object', nullable=True)),
    ('root-more', {}, root(type='object', additionalProperties=False)),
    ('root-metadata', {}, root(type='object', properties={'metadata': {'type': 'object', 'properties': {'labels': {'type': 'object'}}}})),
    ('field-no-type', {}, holds()),
    ('field-type', {}, holds(type='odd')),
    ('field-items', {}, holds(type='array')),
    ('field-more', {}, holds(type='object', properties={'b': {'type': 'string'}}, additionalProperties={'type': 'string'})),
    ('field-unique', {}, holds(type='array', uniqueItems=True, items={'type': 'string'})),
    ('field-list-type', {}, holds(type='array', items={'type': 'string'}, **{'x-kubernetes-list-type': 'odd'})),
    ('field-list-keys', {}, holds(type='array', items={'type': 'object'}, **{'x-kubernetes-list-type': 'map'})),
    ('field-choice', {}, holds(anyOf=[{'type': 'string'}, {'type': 'integer'}])),
    ('good-field-either', {}, holds(**{'x-kubernetes-int-or-string': True})),
    ('good-field-any', {}, holds(type='object', **{'x-kubernetes-preserve-unknown-fields': True})),
    ('field-id', {}, root(type='object', id='x')),
    ('field-preserves-not', {}, root(type='object', **{'x-kubernetes-preserve-unknown-fields': False})),
    ('kind-name', {'spec.names.kind': 'foo_bar'}, {}),
    ('kind-no-name', {'spec.names': {'plural': 'foos'}}, {}),
    ('kind-short', {'spec.names.shortNames': ['F_']}, {}),
    ('kind-category', {'spec.names.categories': ['All']}, {}),
    ('kind-list', {'spec.names.listKind': 'Foo'}, {}),
    ('kind-protected', {'spec.group': 'foo.k8s.io', 'metadata.name': 'foos.foo.k8s.io'}, {}),
    ('conversion', {'spec.conversion': {'strategy': 'Odd'}}, {}),
    ('preserves', {'spec.preserveUnknownFields': True}, {}),
]
OTHERS = [
    ('job-' + name if not name.startswith('good-') else 'good-job-' + name[5:], BATCH + 'jobs', JOB, changes) for name, changes in JOBS
] + [
    ('definition-' + name if not name.startswith('good-') else 'good-definition-' + name[5:], DEFINITIONS,
     definition(number, changes, **version), {}) for number, (name, changes, version) in enumerate(KINDS)
] + [
    ('lease-yesterday', LEASES, LEASE, {'spec.renewTime': 'yesterday'}),
    ('lease-seconds', LEASES, LEASE, {'spec.renewTime': '2026-01-01T00:00:00Z'}),
    ('lease-nanoseconds', LEASES, LEASE, {'spec.renewTime': '2026-01-01T00:00:00.123456789Z'}),
    ('pod-revision', CORE + 'pods', PLAIN, {'metadata.resourceVersion': '5'}),
    ('good-pod-revision-zero', CORE + 'pods', PLAIN, {'metadata.resourceVersion': '0'}),
    ('pod-overhead', CORE + 'pods', PLAIN, {'spec.overhead': {'cpu': '1'}}),
]
