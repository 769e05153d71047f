# SPDX-License-Identifier: Apache-2.0
"""Who the ranks are, and the server that this one's sessions use."""
import json
import os

import tensorflow as tf
from tensorflow.python.client import session as session_lib

from weft import tensorflow_server

_RANKS = ('chief', 'master', 'worker')  # jobs whose tasks are ranks, in this order


class _Job:
    config = None  # TF_CONFIG as it was
    server = None
    tasks = ()  # (job, index, address) by rank
    rank = 0
    everybody = ()  # the same of all tasks that may be ranks
    number = 0  # of this task among them
    fewest = 0  # of ranks, where they come and go; 0: they do not


_job = _Job()


def _host(address):
    return address.rsplit(':', 1)[0]


def _read():
    """The cluster, this task's job and its index.

    To TensorFlow itself, Estimator above all, a Horovod program is one that runs alone: it does not see TF_CONFIG any more.
    """
    if _job.config is None:
        _job.config = os.environ.pop('TF_CONFIG', None) or '{}'
    config = json.loads(_job.config)
    if not config.get('cluster'):
        return None, 'worker', 0
    task = config.get('task', {})
    return config['cluster'], task.get('type', 'worker'), int(task.get('index', 0))


def _fewest(count):
    """Of WEFT_ELASTIC, "fewest:most"; 0 without it."""
    said = os.environ.get('WEFT_ELASTIC', '')
    if not said:
        return 0
    fewest, _, most = said.partition(':')
    if not (fewest.isdigit() and most.isdigit() and 1 <= int(fewest) <= int(most)):
        raise ValueError('WEFT_ELASTIC is %r, expected FEWEST:MOST, such as 2:4' % said)
    if int(fewest) > count:
        raise ValueError('WEFT_ELASTIC is %s, and TF_CONFIG has %d tasks that may be ranks' % (said, count))
    return int(fewest)


def init(comm=None, process_sets=None):
    """Starts this rank's server; sessions without a target are on it from here on."""
    if comm is not None or process_sets is not None:
        raise NotImplementedError('hvd.init of a part of the ranks: weft knows the tasks of TF_CONFIG as one group')
    if _job.server is not None:
        return
    cluster, job, index = _read()
    if cluster is None:
        _job.server = tensorflow_server.Server.create_local_server()
        _job.tasks, _job.rank = [('local', 0, 'localhost:0')], 0
        _job.everybody, _job.number = _job.tasks, 0
    else:
        def tasks_of(name):
            tasks = cluster.get(name, [])
            entries = tasks.items() if isinstance(tasks, dict) else enumerate(tasks)
            return sorted((name, int(number), address) for number, address in entries)
        ranks = [task for name in _RANKS for task in tasks_of(name)]
        mine = [rank for rank, (name, number, _) in enumerate(ranks) if (name, number) == (job, index)]
        if not mine:
            raise ValueError('TF_CONFIG: task %s:%d is no rank; ranks are the tasks of %s' % (job, index, ', '.join(_RANKS)))
        _job.fewest = _fewest(len(ranks))
        if _job.fewest:
            os.environ['WEFT_MEMBERSHIP'] = '1'
        _job.server = tensorflow_server.Server(tf.train.ClusterSpec(cluster), job, index)
        _job.tasks, _job.rank = ranks, mine[0]
        _job.everybody, _job.number = ranks, mine[0]
    _use_for_sessions()


def _use_for_sessions():
    original = session_lib.BaseSession.__init__

    def on_own_server(self, target='', graph=None, config=None):
        if _job.server is not None and target in ('', b'', None):
            target = _job.server.target
            mine = tf.compat.v1.ConfigProto()
            if config is not None:
                mine.CopyFrom(config)
            if not mine.device_filters:
                name, index, _ = _job.everybody[_job.number]
                mine.device_filters.append('/job:%s/task:%d' % (name, index))
            config = mine
        original(self, target, graph, config)

    if getattr(original, '__name__', '') != 'on_own_server':
        session_lib.BaseSession.__init__ = on_own_server


def shutdown():
    if _job.server is not None:
        _job.server._stop()
    _job.server, _job.tasks, _job.rank, _job.fewest = None, (), 0, 0


def is_initialized():
    return _job.server is not None


def _started():
    if _job.server is None:
        raise ValueError('Horovod has not been initialized; use hvd.init().')
    return _job


def is_elastic():
    return _started().fewest > 0


def fewest():
    return _started().fewest


def number():
    """Of this task among all that may be ranks."""
    return _started().number


def target():
    return _started().server.target


def set_members(numbers):
    """Who the ranks are from now on, in order."""
    job = _started()
    job.tasks = [job.everybody[number] for number in numbers]
    job.rank = numbers.index(job.number)


def rank():
    return _started().rank


def size():
    return len(_started().tasks)


def _on_host():
    job = _started()
    here = _host(job.tasks[job.rank][2])
    return [number for number, (_, _, address) in enumerate(job.tasks) if _host(address) == here]


def local_rank():
    """Among the ranks whose addresses name this one's host."""
    return _on_host().index(_job.rank)


def local_size():
    return len(_on_host())


def _hosts():
    return list(dict.fromkeys(_host(address) for _, _, address in _started().tasks))


def cross_rank():
    """The number of this host."""
    return _hosts().index(_host(_job.tasks[rank()][2]))


def cross_size():
    return len(_hosts())


def is_homogeneous():
    hosts = [_host(address) for _, _, address in _started().tasks]
    return len({hosts.count(host) for host in hosts}) == 1
