#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's own tests of remote eager execution and of the coordinator, on TensorFlow's servers and then on weft's.

    remote.py WEFT FOLDER FILE... [--out results.jsonl] [--only WORDS]

FOLDER holds the files as they lie in TensorFlow's repository and stays outside this project; FILE is below it, such as
tensorflow/python/eager/remote_test.py. Each server that a file starts (in-process clusters, clusters of processes, local servers) is
a process of its own instead, of TensorFlow's server or of `weft server`. A case counts if it passes on TensorFlow's servers. Each line of the results is one case.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import traceback
import types
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'conformance'))
import processes  # noqa: E402


# A server dies with the thread that started it, and a test's own threads end before the test.
STARTER = concurrent.futures.ThreadPoolExecutor(1)


class Cluster:
    """Stands for TensorFlow's MultiProcessCluster."""

    def __init__(self, weft, jobs):
        self.weft, self.tasks = weft, {}
        self.spec = {job: ['localhost:%d' % port for port in processes.free_ports(count)] for job, count in jobs.items() if count}
        for job, addresses in self.spec.items():
            for index in range(len(addresses)):
                self.start_task(job, index)

    def start_task(self, task_type, task_id):
        address = self.spec[task_type][task_id]
        listed = {job: [one.replace('localhost', '127.0.0.1') for one in addresses] for job, addresses in self.spec.items()}
        command = [self.weft, 'server', '--cluster', json.dumps(listed), '--job_name', task_type, '--task_index', str(task_id), '--root', '/']
        process = STARTER.submit(subprocess.Popen, command, stdout=subprocess.DEVNULL,
                                 stderr=open(os.environ.get('SERVER_LOG', os.devnull), 'a'), preexec_fn=processes.die_with_parent).result()
        processes.wait_for_port(int(address.rsplit(':', 1)[1]), process)
        self.tasks[task_type, task_id] = process

    def kill_task(self, task_type, task_id):
        self.tasks[task_type, task_id].kill()
        self.tasks[task_type, task_id].wait()

    def stop(self):
        for process in self.tasks.values():
            process.kill()
            process.wait()

    @property
    def cluster_resolver(self):
        import tensorflow as tf
        return tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(self.spec), rpc_layer='grpc')


class LocalServers:
    """Stands for Server.create_local_server(), which every case calls: the same few in turn. A weft server goes by one name, so that
    it is started when a program says which, and again when it says another."""

    def __init__(self, binary, is_weft):
        self.binary, self.is_weft, self.running, self.calls = binary, is_weft, {}, 0
        self.ports = processes.free_ports(4)

    def next(self):
        port = self.ports[self.calls % len(self.ports)]
        self.calls += 1
        if not self.is_weft:
            self.start(port, 'localhost', 0, {'localhost': {'0': '127.0.0.1:%d' % port}})
        return type('Server', (), {'target': 'grpc://localhost:%d' % port})()

    def start(self, port, job, task, cluster):
        name, process = self.running.get(port, (None, None))
        if name == (job, task) and process.poll() is None:
            return
        if process is not None:
            process.kill()
            process.wait()
        process = subprocess.Popen([self.binary, 'server', '--cluster', json.dumps(cluster), '--job_name', job, '--task_index', str(task),
                                    '--root', '/'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=processes.die_with_parent)
        processes.wait_for_port(port, process)
        self.running[port] = (job, task), process

    def named(self, server_def):
        """Starts what of a program's cluster is among these, under the names that it gives."""
        cluster = {job.name: {str(index): address.replace('localhost', '127.0.0.1') for index, address in job.tasks.items()}
                   for job in server_def.cluster.job}
        for job, tasks in cluster.items():
            for index, address in tasks.items():
                port = int(address.rsplit(':', 1)[-1] or 0)
                if port in self.ports:
                    self.start(port, job, int(index), cluster)


def replace_servers(binary, is_weft):
    from tensorflow.python.distribute import multi_worker_test_base
    from tensorflow.python.eager import context
    from tensorflow.python.training import server_lib
    local = LocalServers(binary, is_weft)

    def cluster(num_workers, num_ps, has_chief=False, has_eval=False, **_):
        return Cluster(binary, {'chief': int(has_chief), 'worker': num_workers, 'ps': num_ps, 'evaluator': int(has_eval)})
    multi_worker_test_base.create_multi_process_cluster = cluster
    multi_worker_test_base.create_in_process_cluster = lambda *words, **named: cluster(*words, **named).spec
    server_lib.Server.create_local_server = staticmethod(lambda *_, **__: local.next())
    if is_weft:
        for name in 'set_server_def', 'update_server_def':
            def told(server_def, *words, original=getattr(context, name), **named):
                local.named(server_def)
                return original(server_def, *words, **named)
            setattr(context, name, told)


class Report(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.began = 0

    def say(self, test, outcome, why=''):
        print('@@' + json.dumps(dict(case=test.id() if hasattr(test, 'id') else str(test), outcome=outcome, why=why[-1500:],
                                     seconds=round(time.monotonic() - self.began, 1))), file=sys.__stdout__, flush=True)

    def startTest(self, test):
        self.began = time.monotonic()
        self.say(test, 'began')

    def addSuccess(self, test):
        self.say(test, 'passed')

    def addSkip(self, test, reason):
        self.say(test, 'skipped', reason)

    def addFailure(self, test, err):
        self.say(test, 'failed', ''.join(traceback.format_exception(*err)))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.say(test, 'failed', ''.join(traceback.format_exception(*err)))


def cases_of(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases_of(one)
        else:
            yield one


def child(options):
    """Runs the cases of one file that are named on stdin, all if none are."""
    wanted = set(sys.stdin.read().splitlines())
    folder, path = pathlib.Path(options.folder), options.file[0]
    is_weft = options.backend == 'weft'
    replace_servers(options.weft if is_weft else processes.binary_from(['']), is_weft)
    module = load_file(folder, path)

    def run():
        for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
            chosen = unittest.TestSuite(case for case in cases_of(suite)
                                        if (not wanted or case.id() in wanted) and not case.id().endswith('test_session'))
            if chosen.countTestCases():
                chosen.run(Report())
        sys.stdout.flush()
        os._exit(0)
    from absl import app
    from tensorflow.python.compat import v2_compat
    v2_compat.enable_v2_behavior()
    sys.argv = sys.argv[:1]
    app.run(lambda _: run())


def load_file(folder, path):
    """The file as a module, and before it what it imports from beside it and the wheel does not have."""
    import tensorflow  # noqa: F401
    if 'portpicker' not in sys.modules and importlib.util.find_spec('portpicker') is None:
        sys.modules['portpicker'] = types.SimpleNamespace(pick_unused_port=lambda: processes.free_ports(1)[0])
    for helper in sorted((folder / path).parent.glob('*_test_base.py')):
        beside = str(helper.relative_to(folder))
        if importlib.util.find_spec(beside[:-3].replace('/', '.')) is None:
            load(folder, beside)
    return load(folder, path)


def load(folder, path):
    name = path[:-3].replace('/', '.')
    spec = importlib.util.spec_from_file_location(name, folder / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    parent, _, short = name.rpartition('.')
    setattr(importlib.import_module(parent), short, module)
    spec.loader.exec_module(module)
    return module


def run_file(options, path, backend, wanted):
    """{case: outcome} of one file; what hangs or takes the process along is told, and the others go on."""
    outcomes, left = {}, set(wanted)
    while True:
        command = [sys.executable, __file__, options.weft, options.folder, path, '--backend', backend]
        log = tempfile.TemporaryFile(mode='w+')
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                                   preexec_fn=processes.die_with_parent)
        process.stdin.write('\n'.join(left))
        process.stdin.close()
        current, since, why = None, time.monotonic(), ''
        while True:
            ready, _, _ = select.select([process.stdout], [], [], 1)
            if ready:
                line = process.stdout.readline()
                if not line:
                    why = 'the process ended with %s' % process.wait()
                    break
                if not line.startswith('@@'):
                    continue
                told = json.loads(line[2:])
                since = time.monotonic()
                if told['outcome'] == 'began':
                    current = told['case']
                    continue
                if outcomes.get(told['case'], {}).get('outcome') != 'failed':
                    outcomes[told['case']] = told
                if told['case'] == current:
                    current = None
            elif time.monotonic() - since > options.seconds:
                why = 'no answer in %d s' % options.seconds
                process.kill()
                process.wait()
                break
        if current is not None:
            outcomes[current] = dict(case=current, outcome='failed', why=why)
        remaining = set(wanted) - set(outcomes)
        if not remaining or remaining == left:  # the second: it did not even begin
            if remaining:
                log.seek(0)
                print(log.read()[-3000:], file=sys.stderr)
            return outcomes
        left = remaining


def names(options, path):
    """The cases of a file, without running any."""
    text = '''
import sys, unittest
sys.argv = ['x']
sys.path.insert(0, %r)
import remote, pathlib
folder = pathlib.Path(%r)
for suite in unittest.defaultTestLoader.loadTestsFromModule(remote.load_file(folder, %r)):
    for case in remote.cases_of(suite):
        if not case.id().endswith('test_session'):
            print('@@' + case.id())
''' % (os.path.dirname(os.path.abspath(__file__)), options.folder, path)
    done = subprocess.run([sys.executable, '-c', text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = [line[2:] for line in done.stdout.splitlines() if line.startswith('@@')]
    if not found:
        print(done.stderr[-3000:], file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('weft')
    parser.add_argument('folder')
    parser.add_argument('file', nargs='+')
    parser.add_argument('--out')
    parser.add_argument('--only', default='')
    parser.add_argument('--seconds', type=float, default=90, help='that a case may take')
    parser.add_argument('--backend', help='of a child that this program starts')
    options = parser.parse_args()
    options.weft = os.path.abspath(options.weft)
    if options.backend:
        return child(options)
    passed = applicable = 0
    for path in options.file:
        wanted = [name for name in names(options, path) if options.only in name]
        theirs = run_file(options, path, 'tensorflow', wanted)
        fits = [case for case in wanted if theirs.get(case, {}).get('outcome') == 'passed']
        ours = run_file(options, path, 'weft', fits) if fits else {}
        good = [case for case in fits if ours.get(case, {}).get('outcome') == 'passed']
        passed, applicable = passed + len(good), applicable + len(fits)
        print('%s: %d cases, %d applicable, %d passed' % (path, len(wanted), len(fits), len(good)), flush=True)
        for case in fits:
            if case not in good:
                told = ours.get(case, {})
                print('  %s: %s %s' % (case, told.get('outcome'), told.get('why', '').strip()[-300:].replace('\n', ' | ')), flush=True)
        if options.out:
            with open(options.out, 'a') as out:
                for case in wanted:
                    out.write(json.dumps(dict(file=path, case=case, tensorflow=theirs.get(case), weft=ours.get(case))) + '\n')
    print('%d of %d applicable cases passed' % (passed, applicable))
    return None


if __name__ == '__main__':
    main()
