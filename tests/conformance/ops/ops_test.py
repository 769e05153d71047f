#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every op of weft's catalogue beside the real TensorFlow, on ordinary, edge and wrong inputs.

    ops_test.py [BINARY] [--ops A,B] [--shard I/N] [--verbose] [--signatures]

BINARY is weft, whose server then runs each op, or local_session, which does it without one. Without a binary TensorFlow's
own server stands in, which proves the cases. `BINARY inspect --ops` says what is in the catalogue; an op without a case
fails, and so does a signature that is not TensorFlow's.
"""
import argparse
import fnmatch
import glob
import importlib
import os
import re
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import kernels, op_def_library  # noqa: E402

import processes  # noqa: E402
from cases import GENERATORS, SCRIPTS, Builder, Path  # noqa: E402
from compare import difference  # noqa: E402
from pipe_session import PipeSession  # noqa: E402
from signatures import op_def, read_catalogue, signature_gaps, type_sets  # noqa: E402
from tolerances import code_may_stand_for  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.logging.set_verbosity('ERROR')

# Ops that a client's graph cannot hold alone, with the test that covers them.
ELSEWHERE = {
    **dict.fromkeys(['_Arg', '_Retval', '_Send', '_Recv', '_HostSend', '_HostRecv'], 'every step that crosses tasks'),
    **dict.fromkeys(['_AddProduct', '_FusedConv', '_FusedElementwise', '_FusedProduct', '_SumOfProducts', '_ValueOfSum'],
                    'made by the compiler: session/passes_test and fused_convolutions_test'),
    **dict.fromkeys(['_CopyToDevice', '_CopyToHost'], 'put in by the plan: devices/asic'),
    **dict.fromkeys('CollectiveReduce CollectiveReduceV2 CollectiveReduceV3 CollectiveGather CollectiveGatherV2 CollectiveBcastSend '
                    'CollectiveBcastSendV2 CollectiveBcastRecv CollectiveBcastRecvV2 CollectiveReduceScatterV2 CollectiveAllToAllV2 '
                    'CollectiveAllToAllV3 CollectiveInitializeCommunicator CollectiveAssignGroupV2 NcclAllReduce NcclReduce '
                    'NcclBroadcast'.split(), 'between devices, tasks and sessions: collectives_test.py'),
    '_AsReference': 'made by the compiler: references_test',
    '_ReadVariablesOp': 'a client may not send it',
    **dict.fromkeys(['TopK', 'PlaceholderV2', 'AudioSummary', 'TextLineReader', 'TFRecordReader',
                     'FixedLengthRecordReader', 'IdentityReader',
                     'Conv3DBackpropInput', 'Conv3DBackpropFilter'], 'deprecated: graphs of today may not hold it'),
    **dict.fromkeys('SummaryWriter CreateSummaryFileWriter CreateSummaryDbWriter FlushSummaryWriter CloseSummaryWriter WriteSummary '
                    'WriteScalarSummary WriteHistogramSummary WriteImageSummary WriteAudioSummary WriteGraphSummary '
                    'WriteRawProtoSummary ImportEvent'.split(), 'their events in a file: summary_writer_test.py'),
    'ImmutableConst': 'its file: session_state_test.py',
    'Abort': "ends TensorFlow's process: session_state_test.py",
    'FakeParam': 'functional If; its value is undefined',
    'SymbolicGradient': 'gradients of Defuns: user_programs_test.py',
    'RecordInput': 'its files: user_programs_test.py',
}
# Datasets, iterators and what belongs to them: data_test.py has whole pipelines of them.
DATA = re.compile(r'.*Dataset(V\d)?(Cardinality|ToGraph|FromGraph|Fingerprint|ToSingleElement|Variant)?(V2)?|.*Iterator.*|'
                  r'.*(SeedGenerator|MemoryCache|ThreadPoolHandle|StatsAggregator(Handle(V2)?|Summary|SetSummaryWriter))|GetOptions|GetElementAtIndex|'
                  r'.*DatasetToTFRecord|DummyIterationCounter|ComputeBatchSize|SnapshotDatasetReader')
# Ops whose cases answer Unimplemented for now, and why. When they pass, their line here is a failure.
LATER = {}
STEP_MS = 60000
SHOWN = 4  # failures printed for each op
# Ops whose failures are printed but do not fail the run: those above still need cases, those below answer with
# another error code than TensorFlow for a slice, a file or shapes that do not fit. The list only shrinks.
OPEN = set('''
'''.split())


def session_config():
    config = tf1.ConfigProto(operation_timeout_in_ms=STEP_MS, intra_op_parallelism_threads=1)
    options = config.graph_options
    options.rewrite_options.disable_meta_optimizer = True
    options.optimizer_options.opt_level = -1
    return config


def default_of(attr):
    value = attr.default_value
    kind = value.WhichOneof('value')
    if kind == 'list':
        return [item for _, items in value.list.ListFields() for item in items]
    if kind == 'shape':
        return tf.TensorShape(value.shape)
    return tf.as_dtype(value.type) if kind == 'type' else getattr(value, kind)


def reason(error):
    """What an error says, without the client's page on where the node was made."""
    found = re.search(r"^Node: .*\n((?:.*\n)*?.*)(?:\n\t \[\[|$)", error.message, re.M)
    return (found[1] if found else error.message).strip()[:300]


def apply_op(op, inputs, attrs):
    """Adds `op` to the default graph; returns its output tensors as a list, or itself if it has none."""
    definition = op_def(op)
    if len(inputs) > len(definition.input_arg):
        raise ValueError('%s takes %d inputs, the case gives %d' % (op, len(definition.input_arg), len(inputs)))
    inferred = {a for arg in definition.input_arg for a in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    arguments = {arg.name: value for arg, value in zip(definition.input_arg, inputs)}
    for attr in definition.attr:
        if attr.name in inferred:
            continue
        if attr.name in attrs:
            arguments[attr.name] = attrs[attr.name]
        elif attr.HasField('default_value'):
            arguments[attr.name] = default_of(attr)
    return op_def_library.apply_op(op, name=op.lstrip('_'), **arguments)


def tensors_of(result):
    """The fetchable tensors of what apply_op returned."""
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in tensors_of(part)]
    if isinstance(result, tf.Tensor):
        return [] if result.dtype.base_dtype in (tf.resource, tf.variant) else [result]
    return []


class Item:
    """One run to compare: a built case, or one step of a script."""

    def __init__(self, label, fetches, feeds, error):
        self.label, self.fetches, self.feeds, self.error = label, fetches, feeds, error


def place(array, feeds):
    if isinstance(array, (list, tuple)):
        return [place(a, feeds) for a in array]
    array = array if isinstance(array, Path) else np.asarray(array)
    dtype = tf.string if isinstance(array, Path) or array.dtype.kind in 'OSU' else tf.as_dtype(array.dtype)
    holder = tf1.placeholder(dtype)
    feeds[holder] = array
    return holder


class Side:
    """One of the two servers under comparison. `binary`, if any, is a local_session instead."""

    def __init__(self, target, folder, binary=None):
        self.target, self.folder, self.binary = target, folder, binary

    def session(self, graph):
        if self.binary:
            return PipeSession(self.binary, graph)
        return tf1.Session(self.target, graph=graph, config=session_config())

    def feeds(self, feeds):
        return {k: os.path.join(self.folder, v.name) if isinstance(v, Path) else v for k, v in feeds.items()}

    def run(self, session, item):
        """(values, None) or (None, error)."""
        try:
            return session.run(item.fetches, self.feeds(item.feeds)), None
        except tf.errors.OpError as error:
            return None, error


class Suite:
    def __init__(self, binary, verbose):
        self.binary, self.verbose = binary, verbose
        self.failures, self.later, self.count = {}, set(), 0

    def fail(self, op, text):
        self.failures.setdefault(op, []).append(text)

    def compare(self, op, item, got, want):
        self.count += 1
        (mine, my_error), (theirs, their_error) = got, want
        if bool(their_error) != bool(item.error):
            said = 'TensorFlow says %s: %s' % (their_error.error_code, reason(their_error)) if their_error else (
                'TensorFlow accepts it')
            return self.fail(op, '%s: the case is wrong: %s' % (item.label, said))
        if their_error and not my_error:
            return self.fail(op, '%s: accepted, TensorFlow says %d: %s' % (
                item.label, their_error.error_code, reason(their_error)))
        if their_error:
            if item.error != 'any' and not code_may_stand_for(op, my_error.error_code, their_error.error_code):
                self.fail(op, '%s: error %d (%s), TensorFlow says %d (%s)' % (
                    item.label, my_error.error_code, reason(my_error), their_error.error_code, reason(their_error)))
            return None
        if my_error and op in LATER and my_error.error_code == tf.errors.UNIMPLEMENTED:
            return self.later.add(op)
        if my_error:
            return self.fail(op, '%s: error %d: %s' % (item.label, my_error.error_code, reason(my_error)))
        for k, (a, b) in enumerate(zip(mine, theirs)):
            why = None if b is None else difference(op, a, b, (self.remote.folder, self.local.folder))
            if why:
                self.fail(op, '%s output %d: %s' % (item.label, k, why))
        return None

    def build(self, op, graph):
        items = []
        for types in type_sets(op):
            for generator in GENERATORS[op]:
                for number, case in enumerate(generator(op, types)):
                    label = '%s %s #%d %s' % (' '.join('%s=%s' % t for t in types.items()), case.name, number, ' '.join(
                        '%s=%s' % (k, v) for k, v in case.attrs.items()))
                    feeds = {}
                    try:
                        with graph.as_default(), tf.name_scope('c%d' % len(items)), tf.device('/cpu:0'):
                            result = apply_op(op, [place(x, feeds) for x in case.inputs], {**types, **case.attrs})
                    except (ValueError, TypeError) as error:
                        if not case.error:
                            self.fail(op, '%s: the client refuses it: %.300s' % (label, error))
                        continue
                    items.append(Item(label, tensors_of(result) or [result], feeds, case.error))
        return items

    def run_cases(self, op):
        graph = tf.Graph()
        items = self.build(op, graph)
        if not items:
            return
        good = [item for item in items if not item.error]
        results = []
        for side in self.local, self.remote:
            with side.session(graph) as session:
                together = Item('', [item.fetches for item in good], {k: v for i in good for k, v in i.feeds.items()}, False)
                values, error = side.run(session, together) if good else ([], None)
                if error is None:
                    found = {id(item): (v, None) for item, v in zip(good, values)}
                else:
                    found = {id(item): side.run(session, item) for item in good}
                found.update((id(item), side.run(session, item)) for item in items if item.error)
                results.append(found)
        for item in items:
            self.compare(op, item, results[1][id(item)], results[0][id(item)])

    def run_script(self, op, function, types):
        graph = tf.Graph()
        scope = '%s_%s_%s' % (op, function.__name__, '_'.join(types.values()))
        with graph.as_default(), tf.device('/cpu:0'):
            steps = function(Builder(scope, apply_op), types)
        items = []
        for number, step in enumerate(steps):
            fetches = [f for f in step.fetches]
            label = '%s %s step %d' % (function.__name__, ' '.join('%s=%s' % t for t in types.items()), number)
            items.append(Item(label, fetches, step.feeds, step.error))
        with self.local.session(graph) as mine, self.remote.session(graph) as theirs:
            for item in items:
                before = len(self.failures.get(op, []))
                self.compare(op, item, self.remote.run(theirs, item), self.local.run(mine, item))
                if len(self.failures.get(op, [])) > before or op in self.later:
                    break  # later steps only repeat it

    def run_op(self, op):
        if GENERATORS[op]:
            self.run_cases(op)
        for function, _ in SCRIPTS[op]:
            for types in type_sets(op):
                self.run_script(op, function, types)

    def run(self, ops):
        with tempfile.TemporaryDirectory(prefix='weft-ops-') as folder:
            sides = [os.path.join(folder, name) for name in ('theirs', 'ours')]
            for side in sides:
                os.mkdir(side)
            self.local = Side('', sides[0])
            if os.path.basename(self.binary) == 'local_session':
                self.remote = Side(None, sides[1], self.binary)
                self.run_until_the_server_dies(ops, None)
                ops = []
            while ops:
                with processes.cluster(self.binary, folder=sides[1], local=1) as cluster:
                    self.remote = Side(cluster['local'][0], sides[1])
                    ops = self.run_until_the_server_dies(ops, cluster['processes']['local', 0])

    def run_until_the_server_dies(self, ops, server):
        for number, op in enumerate(ops):
            started = time.monotonic()
            try:
                self.run_op(op)
            except Exception:
                self.fail(op, 'the case is wrong: %s' % traceback.format_exc(limit=-3))
            if op in LATER and op not in self.later and self.failures.get(op) is None:
                self.fail(op, 'works now: remove it from LATER')
            if self.verbose:
                print('%-40s %6.2f s %4d failures' % (op, time.monotonic() - started, len(self.failures.get(op, []))),
                      flush=True)
            if server is not None and server.poll() is not None:
                self.fail(op, 'the server died (exit code %d)' % server.returncode)
                return ops[number + 1:]
        return []


def holes(catalogue):
    """Ops of tf.raw_ops that TensorFlow runs on a CPU and weft neither has nor refuses with a reason (refused_ops.cc)."""
    sys.path.insert(0, os.path.join(HERE, '../../../tools'))
    refused = importlib.import_module('coverage_page').refused()
    theirs = {kernel.op for kernel in kernels.get_all_registered_kernels().kernel if kernel.device_type in ('CPU', 'DEFAULT')}
    return sorted(op for op in theirs - set(catalogue) if hasattr(tf.raw_ops, op) and not op.startswith('Collective') and not any(
        fnmatch.fnmatchcase(op, name) for names, _ in refused for name in names))


def arguments():
    binary = processes.binary_from(sys.argv)
    parser = argparse.ArgumentParser()
    parser.add_argument('--ops', type=lambda text: text.split(','))
    parser.add_argument('--shard', default='0/1')
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('--signatures', action='store_true')
    return binary, parser.parse_args()


def main():
    for module in glob.glob(os.path.join(HERE, 'cases_*.py')):
        importlib.import_module(os.path.basename(module)[:-3])
    binary, args = arguments()
    catalogue = read_catalogue(binary)
    covered = {op for op in GENERATORS if GENERATORS[op]} | {o for pairs in SCRIPTS.values() for _, ops in pairs for o in ops}
    suite = Suite(binary, args.verbose)
    known = sorted(catalogue) if catalogue is not None else sorted(covered)
    if catalogue is not None:
        for op in known:
            if op not in covered and op not in ELSEWHERE and not DATA.fullmatch(op):
                suite.fail(op, 'has no case in tests/conformance/ops')
            for gap in signature_gaps(catalogue[op]):
                suite.fail(op, gap)
        for op in holes(catalogue):
            suite.fail(op, 'is neither here nor refused with a reason')
    if not args.signatures:
        shard, shards = map(int, args.shard.split('/'))
        chosen = args.ops or [op for op in known if GENERATORS[op] or SCRIPTS[op]][shard::shards]
        if catalogue is None:
            LATER.clear()
        suite.run(chosen)
    for op, failures in sorted(suite.failures.items()):
        for failure in failures if args.verbose else failures[:SHOWN]:
            print('%s: %s' % (op, failure))
        if len(failures) > SHOWN and not args.verbose:
            print('%s: and %d more' % (op, len(failures) - SHOWN))
    print('ops: TensorFlow %s, %d ops, %d comparisons, %d failures in %d ops: %s' % (
        tf.__version__, len(known), suite.count, sum(map(len, suite.failures.values())), len(suite.failures),
        ' '.join(sorted(suite.failures))))
    return 1 if set(suite.failures) - OPEN else 0


if __name__ == '__main__':
    sys.exit(main())
