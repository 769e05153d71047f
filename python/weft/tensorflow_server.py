# SPDX-License-Identifier: Apache-2.0
"""A stand-in for tf.train.Server that runs this task as a `weft server` process.

A session on the target of TensorFlow's own in-process server never leaves that process; this one listens on
the task's address and serves TensorFlow's sessions from there. The program is WEFT_BINARY, or `weft` of PATH.

Written so that Python 2.7 and TensorFlow 1 can load it too.
"""
from __future__ import print_function

import atexit
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref

import tensorflow as tf
from tensorflow.python.client import session as session_lib
from tensorflow.python.training import server_lib, session_manager

_START_SECONDS = 60
_PORTS_TRIED = 5
_now = getattr(time, 'monotonic', time.time)
_sessions = weakref.WeakSet()
_running = []


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Server(object):
    """Same arguments as tf.train.Server. Of `config` counts what makes a server (CPU devices, threads) and
    allow_soft_placement."""

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        self._server_def = server_lib._make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._process = None
        self._stopping = False
        tasks = next(job.tasks for job in self._server_def.cluster.job if job.name == self._server_def.job_name)
        host, asked = tasks[self._server_def.task_index].rsplit(':', 1)
        # From elsewhere than its own host a server may want TLS, which TensorFlow's client does not speak.
        local = host if host == 'localhost' or host.startswith('127.') or host == '[::1]' else '127.0.0.1'
        # A port that was free when it was looked for may be somebody else's a moment later.
        for tries_left in reversed(range(_PORTS_TRIED if start and int(asked) == 0 else 1)):
            # A task that is taken over is at its address until the process before has ended.
            port = int(asked) if os.environ.get('WEFT_TAKE_OVER') else self._claim(int(asked))
            tasks[self._server_def.task_index] = '%s:%s' % (host, port)
            self._address = (local.strip('[]'), port)
            self._target = 'grpc://%s:%s' % (local, port)
            if not start:
                return
            try:
                self.start()
                return
            except tf.errors.UnknownError:
                if tries_left == 0 or self._process.poll() is None:
                    raise
                self._process = None

    @staticmethod
    def create_local_server(config=None, start=True):
        return Server({'local': ['localhost:0']}, 'local', 0, 'grpc', config, start)

    @staticmethod
    def _claim(port):
        """A free port for 0; else `port` itself, or an error if somebody listens on it."""
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(('', port))
            except (OSError, socket.error) as error:
                raise tf.errors.UnknownError(None, None, 'Could not start a server on port %d: %s' % (port, error))
            return probe.getsockname()[1]

    server_def = property(lambda self: self._server_def)
    target = property(lambda self: self._target)

    def _flags_of_config(self):
        """As in TensorFlow, allow_soft_placement is then every session's."""
        config = self._server_def.default_session_config
        devices, threads = config.device_count.get('CPU', 0), config.intra_op_parallelism_threads
        return ((['--cpu_devices', str(devices)] if devices > 0 else []) + (['--threads', str(threads)] if threads > 0 else []) +
                (['--soft_placement'] if config.allow_soft_placement else []))

    def start(self):
        if self._process is not None:
            return
        cluster = server_lib.ClusterSpec(self._server_def.cluster).as_dict()
        # The signal follows the thread that forks, so only the main thread may ask for it.
        main = threading.current_thread().name == 'MainThread'
        # With the secret of the job its graphs are this program's own, whose files lie where it says.
        own = 'WEFT_TASK_TLS' in os.environ and not os.environ.get('WEFT_FILE_ROOT')
        self._process = subprocess.Popen(
            [os.environ.get('WEFT_BINARY', 'weft'), 'server', '--cluster', json.dumps(cluster), '--job_name',
             self._server_def.job_name, '--task_index', str(self._server_def.task_index)] +
            (['--file_root', '/'] if own else []) + self._flags_of_config(),
            preexec_fn=_die_with_parent if main else None)
        atexit.register(self._stop)
        deadline = _now() + _START_SECONDS
        while self._process.poll() is None and _now() < deadline:
            try:
                socket.create_connection(self._address, timeout=1).close()
            except (OSError, socket.error):
                time.sleep(0.02)
            else:
                watch = threading.Thread(target=self._die_with_server)
                watch.daemon = True
                watch.start()
                _running.append(self)
                return
        raise tf.errors.UnknownError(None, None, 'The weft server on %s did not start (exit code %s)' % (
            self._target, self._process.poll()))

    def join(self):
        """TensorFlow's server never ends. When this one is told to (SIGTERM), the program ends as if it had been told itself."""
        if os.environ.get('WEFT_HAND_OVER') and threading.current_thread().name == 'MainThread':
            # The server ends when another process has taken the task over, and this program with it.
            signal.signal(signal.SIGTERM, lambda *unused: self._process.terminate())
        if self._process.wait() != 0:
            threading.Event().wait()  # for the thread that ends this process
        sys.exit(128 + signal.SIGTERM)

    def _die_with_server(self):
        """TensorFlow's server is a part of the program: what ends it ends the task, which can be started again."""
        code = self._process.wait()
        if code == 0 or self._stopping:
            return
        how = 'was killed by signal %d' % -code if code < 0 else 'ended with exit code %d' % code
        print('The weft server on %s %s, and its program with it' % (self._target, how), file=sys.stderr)
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(128 - code if code < 0 else code)

    def _stop(self):
        self._stopping = True
        if self in _running:
            _running.remove(self)
        # One that the program left open is closed when Python collects it: without its server that would wait for ever.
        for session in [left for left in list(_sessions) if getattr(left, '_target', None) == self._target.encode()]:
            try:
                session.close()
            except tf.errors.OpError:
                pass  # the server was gone already
        self._process.terminate()
        deadline = _now() + 10
        while self._process.poll() is None and _now() < deadline:
            time.sleep(0.01)
        if self._process.poll() is None:
            self._process.kill()


def _leads(cluster, task):
    """Whether this task runs a program that was written for one device: the chief or master, else the first worker."""
    for job in ('chief', 'master', 'worker', task['type']):
        if cluster.get(job):
            tasks = cluster[job]
            first = min(int(index) for index in tasks) if isinstance(tasks, dict) else 0
            return task['type'] == job and int(task.get('index', 0)) == first


def distribute(how):
    """Sessions that name no target run on this job's servers, which distribute their graphs; a task that does not lead
    serves, and never returns. `how`: 'auto', or 'required' where a training step that cannot be is an error."""
    os.environ['WEFT_DISTRIBUTION'] = how
    if os.environ.get('WEFT_SESSION_TARGET'):
        return  # `weft server -- PROGRAM` has started us
    job = json.loads(os.environ.pop('TF_CONFIG', '') or '{}')
    cluster, task = job.get('cluster'), job.get('task')
    if not cluster:
        server = Server.create_local_server()
    elif task['type'] == 'evaluator':
        return
    else:
        server = Server(server_lib.ClusterSpec(cluster), task['type'], int(task.get('index', 0)))
        if not _leads(cluster, task):
            server.join()
    os.environ['WEFT_SESSION_TARGET'] = server.target


def running():
    """The servers of this program, the latest last."""
    return list(_running)


def _remember_sessions():
    original = session_lib.BaseSession.__init__

    def remembered(self, target='', *args, **kwargs):
        _sessions.add(self)
        original(self, target or os.environ.get('WEFT_SESSION_TARGET', ''), *args, **kwargs)

    session_lib.BaseSession.__init__ = remembered


def _go_on_with_kept_variables():
    """A chief that has lost a server and makes a session anew restores the last checkpoint. Where servers are supervised they have come
    back with variables that are newer: it goes on with these, if none is missing."""
    original = session_manager.SessionManager.prepare_session

    def prepare_session(self, master, *args, **keywords):
        if getattr(self, '_weft_has_prepared', False) and os.environ.get('WEFT_SUPERVISED', '') not in ('', '0'):
            self._target = master
            session = session_lib.Session(master, graph=self._graph, config=keywords.get('config'))
            try:
                if self._model_ready(session)[0] and self._try_run_local_init_op(session)[0]:
                    return session
            except tf.errors.OpError:
                session.close()
                raise
            session.close()
        session = original(self, master, *args, **keywords)
        self._weft_has_prepared = True
        return session

    session_manager.SessionManager.prepare_session = prepare_session


def install():
    modules = [server_lib, getattr(tf, 'distribute', None)]
    for api in tf, getattr(getattr(tf, 'compat', None), 'v1', None):
        modules += [getattr(api, name, None) for name in ('train', 'distribute')]
    for module in modules:
        if hasattr(module, 'Server'):
            module.Server = Server


install()
_remember_sessions()
_go_on_with_kept_variables()
