# SPDX-License-Identifier: Apache-2.0
"""The jobs that both operators care for, and what befalls their pods.

A case is a name, a job's spec and a list of steps. A step is a list of (target, fate) that happen at once; then
both operators come to rest and are compared. Targets are tasks ("worker-0"), "*" for every pod, "job",
"service/TASK", and "foreign/TASK": a pod and a service of that name that the job does not own, whose fates are
appear, "appear as pod" and delete. Fates of a pod: run, "exit CODE", evict, "restarted N" (in place), "waits REASON",
delete. Of a job: suspend, resume, touch, delete, "deadline SECONDS", "scale TYPE N", "drop TYPE", "sleep SECONDS",
"until CONDITION".
"""
import copy

POLICIES = ('Never', 'OnFailure', 'Always', 'ExitCode')
CODES = (1, 2, 126, 127, 128, 130, 137, 138, 139, 143, 255)
RUN = [('*', 'run')]


def template(**spec):
    return {'spec': {'containers': [{'name': 'tensorflow', 'image': 'train:1', 'command': ['train']}], **spec}}


def spec(replicas, policy='Never', run=None, pod=None, **more):
    """`replicas` by type: a number, or the whole replica spec."""
    made = {}
    for kind, count in replicas.items():
        if isinstance(count, dict):
            made[kind] = count
        else:
            made[kind] = {'replicas': count, 'restartPolicy': policy, 'template': copy.deepcopy(pod or template())}
    result = {'tfReplicaSpecs': made, **more}
    if run is not None:
        result['runPolicy'] = run
    return result


def exit_codes():
    """One worker of two fails; what has come in its place runs; the job ends well."""
    for policy in POLICIES:
        for code in CODES:
            yield ('code-%s-%d' % (policy.lower(), code), spec({'PS': 1, 'Worker': 2}, policy),
                   [[], RUN, [('worker-1', 'exit %d' % code)], RUN, [('worker-0', 'exit 0')]])
        yield ('evicted-' + policy.lower(), spec({'PS': 1, 'Worker': 2}, policy),
               [[], RUN, [('worker-1', 'evict')], RUN, [('worker-0', 'exit 0')]])
        yield ('succeeds-' + policy.lower(), spec({'PS': 1, 'Worker': 2}, policy),
               [[], RUN, [('worker-1', 'exit 0')], [('worker-0', 'exit 0')]])


def who_fails():
    shapes = {'chief': {'Chief': 1, 'PS': 1, 'Worker': 1, 'Evaluator': 1}, 'master': {'Master': 1, 'Worker': 1},
              'workers': {'PS': 2, 'Worker': 2}, 'single': {'Worker': 1}}
    for shape, replicas in shapes.items():
        for kind in replicas:
            task = kind.lower() + '-0'
            for policy, code in (('Never', 1), ('ExitCode', 1), ('ExitCode', 137), ('OnFailure', 1)):
                yield ('fails-%s-%s-%s-%d' % (shape, kind.lower(), policy.lower(), code), spec(replicas, policy),
                       [[], RUN, [(task, 'exit %d' % code)], RUN])
            yield ('ends-%s-%s' % (shape, kind.lower()), spec(replicas), [[], RUN, [(task, 'exit 0')]])


def success():
    for policy in ('', 'AllWorkers'):
        tag = policy.lower() or 'default'
        yield ('success-%s-worker-0' % tag, spec({'PS': 1, 'Worker': 2}, successPolicy=policy),
               [[], RUN, [('worker-0', 'exit 0')], [('worker-1', 'exit 0')]])
        yield ('success-%s-worker-1' % tag, spec({'PS': 1, 'Worker': 2}, successPolicy=policy),
               [[], RUN, [('worker-1', 'exit 0')], [('worker-0', 'exit 0')]])
        yield ('success-%s-chief' % tag, spec({'Chief': 1, 'Worker': 2}, successPolicy=policy),
               [[], RUN, [('worker-0', 'exit 0'), ('worker-1', 'exit 0')], [('chief-0', 'exit 0')]])
    yield ('success-of-all-at-once', spec({'Worker': 2}), [[], [('*', 'exit 0')]])
    yield ('parameter-servers-alone', spec({'PS': 2}), [[], RUN, [('*', 'exit 0')]])


def clean_up():
    for policy in ('All', 'Running', 'None'):
        for tag, code in (('done', 0), ('failed', 1)):
            # One pod never starts, one has ended, two run.
            yield ('clean-%s-%s' % (policy.lower(), tag), spec({'PS': 1, 'Worker': 3}, run={'cleanPodPolicy': policy}),
                   [[], [('ps-0', 'run'), ('worker-0', 'run'), ('worker-1', 'exit 0')],
                    [('worker-0', 'exit %d' % code)]])
        yield ('clean-%s-deadline' % policy.lower(), spec({'Worker': 2}, run={'cleanPodPolicy': policy}),
               [[], RUN, [('job', 'sleep 1'), ('job', 'deadline 1'), ('job', 'until Failed')]])


def limits():
    for limit in (0, 1, 3):
        for policy in POLICIES:
            run = {'backoffLimit': limit}
            yield ('backoff-%d-%s-in-place' % (limit, policy.lower()), spec({'Worker': 2}, policy, run),
                   [[], RUN, [('worker-1', 'restarted 1')], [('worker-1', 'restarted 3')]])
        yield ('backoff-%d-never-fails' % limit, spec({'Worker': 2}, 'Never', {'backoffLimit': limit}),
               [[], RUN, [('worker-1', 'exit 1')]])
    yield ('backoff-3-once', spec({'Worker': 2}, 'ExitCode', {'backoffLimit': 3}),
           [[], RUN, [('worker-1', 'exit 137')], RUN, [('worker-0', 'exit 0')]])
    yield ('deadline-long', spec({'Worker': 1}, run={'activeDeadlineSeconds': 3600}),
           [[], RUN, [('worker-0', 'exit 0')]])
    # A deadline from the start would be over for one of the two, on a slow machine, while nothing tells the other.
    yield ('deadline-pending', spec({'Worker': 1}),
           [[], [('job', 'sleep 1'), ('job', 'deadline 1'), ('job', 'until Failed')]])
    for code in (0, 1):
        yield ('ttl-0-code-%d' % code, spec({'Worker': 2}, run={'ttlSecondsAfterFinished': 0}),
               [[], RUN, [('worker-0', 'exit %d' % code), ('job', 'until gone')]])
        yield ('ttl-2-code-%d' % code, spec({'Worker': 2}, run={'ttlSecondsAfterFinished': 2}),
               [[], RUN, [('worker-0', 'exit %d' % code), ('job', 'until gone')]])
        yield ('ttl-long-code-%d' % code, spec({'Worker': 2}, run={'ttlSecondsAfterFinished': 3600}),
               [[], RUN, [('worker-0', 'exit %d' % code)]])


def suspension():
    held = {'suspend': True}
    yield ('suspended-from-the-start', spec({'PS': 1, 'Worker': 1}, run=held),
           [[], [('job', 'resume')], RUN, [('worker-0', 'exit 0')]])
    yield ('suspended-while-waiting', spec({'PS': 1, 'Worker': 1}),
           [[], [('job', 'suspend')], [('job', 'resume')], RUN])
    yield ('suspended-while-running', spec({'PS': 1, 'Worker': 1}),
           [[], RUN, [('job', 'suspend')], [('job', 'resume')], RUN, [('worker-0', 'exit 0')]])
    yield ('suspended-when-done', spec({'Worker': 1}),
           [[], RUN, [('worker-0', 'exit 0')], [('job', 'suspend')], [('job', 'resume')]])
    yield ('suspended-when-failed', spec({'Worker': 1}),
           [[], RUN, [('worker-0', 'exit 1')], [('job', 'suspend')]])
    yield ('suspended-with-one-done', spec({'Worker': 3}),
           [[], RUN, [('worker-2', 'exit 0')], [('job', 'suspend')], [('job', 'resume')]])
    yield ('suspended-clean-all', spec({'Worker': 2}, run={'cleanPodPolicy': 'All'}), [[], RUN, [('job', 'suspend')]])
    for manager in ('kueue.x-k8s.io/multikueue', 'kubeflow.org/training-operator'):
        yield ('managed-by-' + manager.split('.')[0], spec({'Worker': 1}, run={'managedBy': manager}), [[]])


def dynamic():
    more = {'enableDynamicWorker': True}
    yield ('dynamic-fails', spec({'PS': 1, 'Worker': 2}, **more),
           [[], RUN, [('worker-1', 'exit 1')], [('worker-0', 'exit 0')]])
    yield ('dynamic-ps-fails', spec({'PS': 1, 'Worker': 2}, **more), [[], RUN, [('ps-0', 'exit 1')]])
    yield ('dynamic-chief', spec({'Chief': 1, 'PS': 1, 'Worker': 1}, **more), [[], RUN, [('chief-0', 'exit 0')]])
    yield ('dynamic-grows', spec({'PS': 1, 'Worker': 1}, **more),
           [[], RUN, [('job', 'scale Worker 3')], RUN, [('job', 'scale Worker 1')]])
    for kind in ('Worker', 'PS'):
        yield ('grows-' + kind.lower(), spec({'PS': 1, 'Worker': 1}), [[], RUN, [('job', 'scale %s 3' % kind)], RUN])
        yield ('shrinks-' + kind.lower(), spec({'PS': 3, 'Worker': 3}), [[], RUN, [('job', 'scale %s 1' % kind)]])
    yield ('loses-a-type', spec({'PS': 1, 'Worker': 1}), [[], RUN, [('job', 'drop PS')]])


def accidents():
    yield ('pod-deleted', spec({'PS': 1, 'Worker': 2}), [[], RUN, [('worker-1', 'delete')], RUN, [('worker-0', 'exit 0')]])
    yield ('pod-deleted-when-done', spec({'Worker': 2}), [[], RUN, [('worker-0', 'exit 0')], [('worker-1', 'delete')]])
    yield ('service-deleted', spec({'PS': 1, 'Worker': 1}), [[], RUN, [('service/ps-0', 'delete')]])
    yield ('names-are-taken', spec({'PS': 1, 'Worker': 1}),
           [[], [('foreign/worker-1', 'appear')], [('job', 'scale Worker 2')], [('foreign/worker-1', 'delete')]])
    yield ('pod-name-is-taken', spec({'PS': 1, 'Worker': 1}),
           [[], [('foreign/worker-1', 'appear as pod')], [('job', 'scale Worker 2')], [('foreign/worker-1', 'delete')]])
    yield ('job-deleted', spec({'PS': 1, 'Worker': 1}), [[], RUN, [('job', 'delete'), ('job', 'until gone')]])
    yield ('image-is-missing', spec({'Worker': 1}), [[], [('worker-0', 'waits ImagePullBackOff')]])
    yield ('two-fail-at-once', spec({'Worker': 3}, 'ExitCode'),
           [[], RUN, [('worker-1', 'exit 137'), ('worker-2', 'exit 143')], RUN])
    yield ('touched', spec({'Worker': 1}),
           [[], [('job', 'touch')], RUN, [('job', 'touch')], [('worker-0', 'exit 0')], [('job', 'touch')]])


def templates():
    one = {'replicas': 1, 'restartPolicy': 'Never', 'template': template()}
    ported = template()
    ported['spec']['containers'][0]['ports'] = [{'name': 'tfjob-port', 'containerPort': 3333}, {'name': 'web', 'containerPort': 80}]
    other = template()
    other['spec']['containers'][0]['ports'] = [{'name': 'web', 'containerPort': 80}, {'containerPort': 81}]
    two = template()
    two['spec']['containers'].insert(0, {'name': 'helper', 'image': 'help:1', 'ports': [{'containerPort': 9}]})
    dressed = {'metadata': {'labels': {'team': 'a', 'training.kubeflow.org/job-name': 'other'}, 'annotations': {'note': 'n'}},
               **template(schedulerName='other-scheduler', priority=None, nodeSelector={'disk': 'ssd'},
                          initContainers=[{'name': 'fetch', 'image': 'fetch:1'}])}
    del dressed['spec']['priority']
    environment = template()
    environment['spec']['containers'][0]['env'] = [{'name': 'TF_CONFIG', 'value': 'mine'}, {'name': 'A', 'value': 'b'}]
    for name, pod in (('ports', ported), ('other-ports', other), ('helper', two), ('labels', dressed), ('env', environment),
                      ('restart-policy', template(restartPolicy='Always')), ('network', template(hostNetwork=True))):
        yield ('template-' + name, spec({'PS': 1, 'Worker': 1}, pod=pod), [[]])
    yield ('many-tasks', spec({'PS': 1, 'Worker': 9}), [[]])
    yield ('no-replicas-said', spec({'Worker': {'template': template()}}), [[], RUN, [('worker-0', 'exit 1')]])
    yield ('types-in-small-letters', spec({'ps': one, 'worker': {**one, 'replicas': 2}}), [[], RUN, [('worker-0', 'exit 0')]])
    yield ('types-in-capitals', spec({'PS': one, 'WORKER': one, 'CHIEF': one}), [[], RUN, [('chief-0', 'exit 0')]])
    for shape in ({'Chief': 1}, {'Worker': 1}, {'Chief': 1, 'Evaluator': 1}, {'Worker': 3}):
        name = '-'.join('%s%d' % (kind.lower(), count) for kind, count in shape.items())
        yield ('cluster-' + name, spec(shape), [[]])


def all_cases():
    cases = [case for make in (exit_codes, who_fails, success, clean_up, limits, suspension, dynamic, accidents, templates)
             for case in make()]
    names = [name for name, _, _ in cases]
    assert len(set(names)) == len(names), 'names must differ'
    return cases
