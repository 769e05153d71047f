# SPDX-License-Identifier: Apache-2.0
"""What an operator has made of a job, as a flat map to compare, and the table of differences that are meant."""
import fnmatch
import re

import api_client

CONDITIONS = {'lastTransitionTime', 'lastUpdateTime'}
# The server's, or different by nature.
OWN = {'uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'namespace', 'generation', 'name',
       'deletionTimestamp', 'deletionGracePeriodSeconds'}
ROW = re.compile(r'^\| `([^|]*)` \| `([^|]*)` \|(.*)\|(.*)\|(.*)\|$')


def flatten(value, path, into):
    if isinstance(value, dict):
        for key, part in value.items():
            flatten(part, '%s.%s' % (path, key), into)
    elif isinstance(value, list):
        into[path + '.length'] = len(value)
        for index, part in enumerate(value):
            flatten(part, '%s.%d' % (path, index), into)
    else:
        into[path] = value


def flat_job(job):
    flat = {}
    if job is None:
        return {'job': 'gone'}
    status = job.get('status', {})
    conditions = status.get('conditions', [])
    flat['conditions'] = ' '.join('%s=%s' % (each['type'], each['status']) for each in conditions)
    for each in conditions:
        flat['condition.%s.reason' % each['type']] = each['reason']
        flat['condition.%s.message' % each['type']] = each['message']
        flat['condition.%s.times' % each['type']] = ' '.join(sorted(CONDITIONS & set(each)))
    for key, value in status.items():
        if key.endswith('Time'):
            flat['status.' + key] = 'a time' if value else value
        elif key != 'conditions':
            flatten(value, 'status.' + key, flat)
    return flat


def flat_object(kind, name, item, into):
    path = '%s.%s' % (kind, name)
    into[path] = 'terminating' if item['metadata'].get('deletionTimestamp') else 'there'
    flatten({key: value for key, value in item['metadata'].items() if key not in OWN}, path, into)
    for key in [key for key in into if key.startswith(path + '.ownerReferences') and key.endswith('.uid')]:
        del into[key]
    spec = dict(item['spec'])
    if kind == 'service':
        # The reference takes them from a map, in any order.
        spec['ports'] = sorted(spec.get('ports', []), key=lambda port: port.get('name', ''))
    flatten(spec, path + '.spec', into)
    into[path + '.phase'] = item.get('status', {}).get('phase')


def versions(api, namespace):
    """Of each object but events."""
    seen = set()
    for kind in ('tfjobs', 'pods', 'services'):
        for item in api.request('GET', api.path(namespace, kind), accept=api_client.METADATA)['items']:
            meta = item['metadata']
            seen.add((namespace, kind, meta['name'], meta['uid'], meta['resourceVersion']))
    return seen


class Snapshot:
    """Of a namespace, by job."""

    def __init__(self, api, namespace):
        self.namespace = namespace
        self.jobs = {job['metadata']['name']: job for job in api.list(namespace, 'tfjobs')}
        self.pods = self.by_owner(api.list(namespace, 'pods'))
        self.services = self.by_owner(api.list(namespace, 'services'))
        self.events = api.list(namespace, 'events')

    @staticmethod
    def by_owner(items):
        owned = {}
        for item in items:
            for owner in item['metadata'].get('ownerReferences', []):
                owned.setdefault(owner['name'], {})[item['metadata']['name']] = item
        return owned

    def flat(self, name):
        flat = flat_job(self.jobs.get(name))
        for kind, owned in (('pod', self.pods), ('service', self.services)):
            for each, item in owned.get(name, {}).items():
                flat_object(kind, each[len(name) + 1:], item, flat)
        for event in self.events:
            if event['involvedObject']['name'] == name and event['involvedObject']['kind'] == 'TFJob':
                flat['event.%s.%s: %s' % (event['type'], event['reason'], event['message'])] = 'told'
        return {self.neutral(key, name): self.neutral(value, name) for key, value in flat.items()}

    def neutral(self, value, name):
        if not isinstance(value, str):
            return value
        value = re.sub(r'\b%s\b' % re.escape(self.namespace), 'NAMESPACE', value)
        return re.sub(r'\b%s\b' % re.escape(name), 'JOB', value)


def differences(ours, theirs):
    """(where, here, there) of two flat maps; objects that only one has are told once."""
    absent = {where for where in set(ours) ^ set(theirs) if re.fullmatch(r'(pod|service)\.[^.]*', where)}
    result = []
    for where in sorted(set(ours) | set(theirs)):
        if ours.get(where) == theirs.get(where):
            continue
        if where not in absent and any(where.startswith(each + '.') for each in absent):
            continue
        result.append((where, ours.get(where), theirs.get(where)))
    return result


class Table:
    """Rows "| `cases` | `where` | here | there | why |" of a page; the first two are patterns, several by commas.

    A row that says "sometimes" is for a race: it need not be seen.
    """

    def __init__(self, page):
        self.rows = []
        self.used = set()
        for line in page.read_text().splitlines():
            match = ROW.match(line)
            if match:
                if 'sometimes' in line:
                    self.used.add(len(self.rows))
                self.rows.append([[part.strip() for part in match.group(i).split(',')] for i in (1, 2)])

    def knows(self, case, where):
        known = False
        for index, (cases, places) in enumerate(self.rows):
            if any(fnmatch.fnmatchcase(case, each) for each in cases) and \
                    any(fnmatch.fnmatchcase(where, each) for each in places):
                self.used.add(index)
                known = True
        return known

    def unused(self):
        return [row for index, row in enumerate(self.rows) if index not in self.used]
