# SPDX-License-Identifier: Apache-2.0
"""What befalls jobs and pods in the differential: written into the status by a client, as no kubelet is there."""
import itertools
import time

import cluster

NOW = '2026-01-02T03:04:05Z'
SENTINELS = itertools.count()


def create(api, namespace, case):
    name, spec, _ = case
    api.create(namespace, 'tfjobs', {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name},
                                     'spec': spec})


def await_sentinel(api, namespace):
    """A new job has got its pod and its service: what came before it has been seen too."""
    name = 'sentinel-%d' % next(SENTINELS)
    spec = {'tfReplicaSpecs': {'Worker': {'template': {'spec': {'containers': [{'name': 'tensorflow', 'image': 'i'}]}}}}}
    api.create(namespace, 'tfjobs', {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name},
                                     'spec': spec})
    for kind in ('pods', 'services'):
        cluster.wait_for(lambda: api.get(namespace, kind, name + '-worker-0'), '%s of %s' % (kind, name))
    api.delete(namespace, 'tfjobs', name)


def container_statuses(pod, state, restarts=0):
    return [{'name': container['name'], 'image': container['image'], 'imageID': '', 'ready': 'running' in state,
             'restartCount': restarts, 'state': state} for container in pod['spec']['containers']]


def ended(code):
    return {'terminated': {'exitCode': code, 'reason': 'Completed' if code == 0 else 'Error', 'startedAt': NOW,
                           'finishedAt': NOW}}


def pod_status(pod, fate):
    word, _, rest = fate.partition(' ')
    if word == 'run':
        return {'phase': 'Running', 'containerStatuses': container_statuses(pod, {'running': {'startedAt': NOW}})}
    if word == 'restarted':
        return {'phase': 'Running',
                'containerStatuses': container_statuses(pod, {'running': {'startedAt': NOW}}, int(rest))}
    if word == 'exit':
        return {'phase': 'Failed' if int(rest) else 'Succeeded', 'containerStatuses': container_statuses(pod, ended(int(rest)))}
    if word == 'evict':
        return {'phase': 'Failed', 'reason': 'Evicted', 'containerStatuses': None}
    if word == 'waits':
        return {'phase': 'Pending', 'containerStatuses':
                container_statuses(pod, {'waiting': {'reason': rest, 'message': 'back-off'}})}
    raise ValueError('no fate of a pod: ' + fate)


def befall_pod(api, namespace, name, fate):
    if fate == 'delete':
        return api.delete(namespace, 'pods', name)
    pod = cluster.wait_for(lambda: api.get(namespace, 'pods', name), 'pod %s/%s' % (namespace, name))
    return set_fate(api, namespace, pod, fate)


def befall_task(api, namespace, job, task, fate):
    """A pod that is gone for good has no fate: that it is gone is compared. One that fails again may be waited for."""
    name = '%s-%s' % (job, task)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if api.get(namespace, 'pods', name) is not None:
            return befall_pod(api, namespace, name, fate)
        held = api.get(namespace, 'tfjobs', job)
        if held is None or has_condition(held, 'Failed') or has_condition(held, 'Succeeded'):
            return None
        time.sleep(0.2)
    return None


def set_fate(api, namespace, pod, fate):
    name = pod['metadata']['name']
    return api.merge(namespace, 'pods', name, {'status': pod_status(pod, fate)}, 'status')


def befall_foreign(api, namespace, name, fate):
    if fate == 'delete':
        for kind in ('pods', 'services'):
            api.delete(namespace, kind, name)
        return
    metadata = {'name': name}
    api.create(namespace, 'pods', {'metadata': metadata, 'spec': {'containers': [{'name': 'other', 'image': 'i'}]}})
    if fate == 'appear':
        api.create(namespace, 'services', {'metadata': metadata, 'spec': {'clusterIP': 'None', 'selector': {'a': 'b'}}})


def has_condition(job, kind):
    return job is not None and any(each['type'] == kind and each['status'] == 'True'
                                   for each in job.get('status', {}).get('conditions', []))


def befall_job(api, namespace, name, fate):
    word, *rest = fate.split()
    if word == 'sleep':
        return time.sleep(float(rest[0]))
    if word == 'delete':
        return api.delete(namespace, 'tfjobs', name)
    if word == 'until':
        def is_so():
            job = api.get(namespace, 'tfjobs', name)
            return job is None if rest[0] == 'gone' else has_condition(job, rest[0])
        return cluster.wait_for(is_so, '%s of %s/%s' % (rest[0], namespace, name))
    change = {
        'suspend': lambda: {'spec': {'runPolicy': {'suspend': True}}},
        'resume': lambda: {'spec': {'runPolicy': {'suspend': False}}},
        'deadline': lambda: {'spec': {'runPolicy': {'activeDeadlineSeconds': int(rest[0])}}},
        'touch': lambda: {'metadata': {'annotations': {'touched': str(time.time())}}},
        'scale': lambda: {'spec': {'tfReplicaSpecs': {rest[0]: {'replicas': int(rest[1])}}}},
        'drop': lambda: {'spec': {'tfReplicaSpecs': {rest[0]: None}}},
    }[word]()
    return api.merge(namespace, 'tfjobs', name, change)


def befall(api, namespace, job, step):
    for target, fate in step:
        if target == 'job':
            befall_job(api, namespace, job, fate)
        elif target == '*':
            for pod in api.list(namespace, 'pods', 'training.kubeflow.org/job-name=' + job):
                if pod.get('status', {}).get('phase') in ('Pending', None, 'Running'):
                    befall_pod(api, namespace, pod['metadata']['name'], fate)
        elif target.startswith('foreign/'):
            befall_foreign(api, namespace, '%s-%s' % (job, target[len('foreign/'):]), fate)
        elif target.startswith('service/'):
            api.delete(namespace, 'services', '%s-%s' % (job, target[len('service/'):]))
        else:
            befall_task(api, namespace, job, target, fate)
