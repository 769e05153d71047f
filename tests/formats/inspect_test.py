# SPDX-License-Identifier: Apache-2.0
"""`weft inspect` and `weft check` on files that TensorFlow writes: inspect_test.py WEFT [unittest arguments]."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
WEFT = None


def weft(*args, code=0):
    done = subprocess.run([WEFT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != code:
        raise AssertionError('%s ended with %d: %s %s' % (args, done.returncode, done.stdout, done.stderr))
    return done.stdout if code != 2 else done.stderr


def inspect(*args):
    return json.loads(weft('inspect', *args, '--json'))


class FileTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='inspect-')
        self.addCleanup(shutil.rmtree, self.folder)

    def at(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, content):
        with open(self.at(name), 'wb') as out:
            out.write(content)
        return self.at(name)

    def checkpoint(self):
        """A program's folder: checkpoint, meta graph and graph.pbtxt."""
        with tf1.Graph().as_default(), tf1.Session() as session:
            x = tf1.placeholder(tf.float32, [None, 3], name='x')
            w = tf1.get_variable('w', initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=True)
            old = tf1.get_variable('old', initializer=np.array([7, -8], np.int64), use_resource=False)
            tf.add(tf.matmul(x, w), 1.0, name='y')
            session.run([w.initializer, old.initializer])
            tf1.train.write_graph(session.graph, self.folder, 'graph.pbtxt')
            prefix = tf1.train.Saver().save(session, self.at('model.ckpt'), global_step=5)
            return prefix, session.graph.as_graph_def()


class InspectTest(FileTest):
    def test_graphs_in_every_form(self):
        prefix, graph = self.checkpoint()
        binary = self.write('graph.pb', graph.SerializeToString())
        for path, form in ((binary, 'GraphDef'), (self.at('graph.pbtxt'), 'GraphDef as text'),
                           (prefix + '.meta', 'MetaGraphDef')):
            seen = inspect(path)
            self.assertEqual((seen['kind'], seen['form']), ('graph', form))
            found = seen['graphs'][0]
            self.assertEqual({(v['name'], v['dtype'], tuple(v['shape'])) for v in found['variables']},
                             {('w', 'float', (3, 2)), ('old', 'int64', (2,))})
            self.assertEqual([(v['name'], v['shape']) for v in found['inputs']][0], ('x', [-1, 3]))
            self.assertEqual(found['ops']['MatMul'], 1)
            self.assertIn('y', found['ends'])
        text = weft('inspect', binary)
        for word in 'VarHandleOp', 'float [?,3]', 'w ', 'Variables', 'Inputs':
            self.assertIn(word, text)
        with tf1.Graph().as_default() as constants:
            tf.constant([[1.5, 2.5]], name='c')
            path = self.write('c.pb', constants.as_graph_def().SerializeToString())
        self.assertEqual(inspect(path, '--tensor', 'c')['values'], [1.5, 2.5])

    def test_checkpoints_and_their_values(self):
        prefix, _ = self.checkpoint()
        for path in prefix, prefix + '.index', prefix + '.data-00000-of-00001', self.folder:
            seen = inspect(path)
            self.assertEqual((seen['kind'], seen['shards'], seen['bytes']), ('checkpoint', 1, 40))
            self.assertEqual([(t['name'], t['dtype'], t['shape']) for t in seen['tensors']],
                             [('old', 'int64', [2]), ('w', 'float', [3, 2])])
        values = inspect(prefix, '--tensor', 'w')
        self.assertEqual((values['shape'], values['values']), ([3, 2], [0, 1, 2, 3, 4, 5]))
        self.assertEqual(inspect(prefix, '--tensor', 'old')['values'], [7, -8])
        cut = inspect(prefix, '--tensor', 'w', '--max_values', '2')
        self.assertEqual((cut['values'], cut['left_out']), ([0, 1], 4))
        self.assertIn('float [3,2]', weft('inspect', prefix, '--tensor', 'w'))
        self.assertIn("'old'", weft('inspect', prefix, '--tensor', 'olt', code=1) + self.error(prefix, '--tensor', 'olt'))
        data = prefix + '.data-00000-of-00001'
        with open(data, 'r+b') as out:
            out.truncate(39)
        self.assertIn('tensors end at 40', self.error(prefix))
        os.remove(data)
        self.assertIn(data, self.error(prefix))
        with open(prefix + '.index', 'r+b') as index:
            index.truncate(20)
        self.assertIn(prefix, self.error(prefix))

    def error(self, *args):
        done = subprocess.run([WEFT, 'inspect', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1, done)
        return done.stderr

    def test_values_of_every_kind(self):
        tensors = {'text': np.array([b'a', b'\xff'], object), 'yes': np.array([True, False]),
                   'half': np.array([0.5], np.float16), 'z': np.array([1 + 2j], np.complex64),
                   'big': np.array([2**63], np.uint64), 'odd': np.array([np.nan, np.inf], np.float64)}
        with tf1.Graph().as_default(), tf1.Session() as session:
            session.run(tf.raw_ops.SaveV2(prefix=self.at('all'), tensor_names=list(tensors), shape_and_slices=[''] * 6,
                                          tensors=[tf.constant(value) for value in tensors.values()]))
        values = {name: inspect(self.at('all'), '--tensor', name)['values'] for name in tensors}
        self.assertEqual(values, {'text': ['a', '\ufffd'], 'yes': [True, False], 'half': [0.5], 'z': [[1, 2]],
                                  'big': [2.0**63], 'odd': [None, None]})

    def test_event_files(self):
        with tf1.Graph().as_default() as graph:
            writer = tf1.summary.FileWriter(self.folder, graph)
            for step in 10, 20:
                writer.add_summary(tf1.Summary(value=[tf1.Summary.Value(tag='loss', simple_value=step / 4)]), step)
            writer.close()
        with tf.summary.create_file_writer(self.at('two')).as_default():
            tf.summary.scalar('accuracy', 0.75, step=3)
            tf.summary.histogram('w', tf.range(10.0), step=3)
        one, = [name for name in os.listdir(self.folder) if 'tfevents' in name]
        seen = inspect(self.at(one))
        self.assertEqual((seen['kind'], seen['graphs'] > 0, seen['last_step']), ('events', True, 20))
        self.assertEqual(seen['tags'], [{'tag': 'loss', 'kind': 'scalar', 'count': 2, 'first_step': 10, 'last_step': 20,
                                         'last': 5}])
        two, = os.listdir(self.at('two'))
        tags = {tag['tag']: tag for tag in inspect(self.at('two', two))['tags']}
        self.assertEqual((tags['accuracy']['last'], tags['accuracy']['last_step']), (0.75, 3))
        self.assertEqual(tags['w']['count'], 1)
        self.assertIn('loss', weft('inspect', self.at(one)))

    def test_records(self):
        feature = {'label': tf.train.Feature(int64_list=tf.train.Int64List(value=[1])),
                   'pixels': tf.train.Feature(float_list=tf.train.FloatList(value=[0.0] * 64))}
        example = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
        for kind in '', 'GZIP':
            path = self.at('records' + kind)
            with tf.io.TFRecordWriter(path, kind) as writer:
                for _ in range(3):
                    writer.write(example)
            seen = inspect(path)
            self.assertEqual((seen['kind'], seen['records'], seen['bytes']), ('records', 3, 3 * len(example)))
            self.assertEqual(seen['first_example'], {'label': 'int64 x1', 'pixels': 'float x64'})
        with open(self.at('records'), 'r+b') as out:
            out.truncate(2 * (len(example) + 16) + 7)
        done = subprocess.run([WEFT, 'inspect', self.at('records'), '--json'], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, json.loads(done.stdout)['records']), (1, 2), done.stderr)
        self.assertIn(self.at('records'), done.stderr)

    def test_what_is_nothing(self):
        for text in '', ' \n\n':
            with open(self.at('nothing'), 'w') as out:
                out.write(text)
            self.assertIn('nothing is empty', self.error(self.at('nothing')))
        with open(self.at('long'), 'w') as out:
            out.write('x' * 100000)
        self.assertLess(len(self.error(self.at('long'))), 1000)
        self.assertIn('grpc://localhost:2222', self.error('localhost:2222'))

    def test_what_it_cannot_read(self):
        self.assertIn('missing', self.error(self.at('missing')))
        self.assertIn('noise', self.error(self.write('noise', bytes(range(256)) * 8)))
        self.assertIn('empty', self.error(self.write('empty', b'')))
        self.assertIn('line 1', self.error(self.write('bad.pbtxt', b'node { name: "a" opp: "b" }\n')))
        os.mkdir(self.at('nothing'))
        self.assertIn('nothing', self.error(self.at('nothing')))


class CheckTest(FileTest):
    def problems(self, path, code=1):
        return json.loads(weft('check', path, '--json', code=code))['graphs'][0]['problems']

    def test_a_plain_model_runs(self):
        prefix, graph = self.checkpoint()
        binary = self.write('graph.pb', graph.SerializeToString())
        for path in binary, self.at('graph.pbtxt'), prefix + '.meta', prefix, self.folder:
            self.assertIn('It would run.', weft('check', path))

    def test_names_what_is_not_there(self):
        graph = tf1.GraphDef()
        for name in 'a', 'b':
            graph.node.add(name=name, op='Constt')
        graph.node.add(name='far', op='QuiteAnotherThing')
        path = self.write('odd.pb', graph.SerializeToString())
        problems = {problem['what']: problem for problem in self.problems(path)}
        self.assertEqual(set(problems), {'Constt', 'QuiteAnotherThing'})
        self.assertEqual((problems['Constt']['kind'], problems['Constt']['nearest'], problems['Constt']['nodes']),
                         ('unknown_op', 'Const', ['a', 'b']))
        self.assertNotIn('nearest', problems['QuiteAnotherThing'])
        text = weft('check', path, code=1)
        for word in 'Constt', 'is Const meant', '2 nodes: a, b', 'It would not run yet':
            self.assertIn(word, text)

    def test_types_that_an_op_does_not_take_and_devices(self):
        with tf1.Graph().as_default() as graph, tf.device('/device:GPU:0'):
            tf.raw_ops.Rsqrt(x=tf1.placeholder(tf.float32, [2, 2], name='x'), name='root')
        definition = graph.as_graph_def()
        for node in definition.node:
            node.attr['T' if node.name == 'root' else 'dtype'].type = tf.int32.as_datatype_enum
        path = self.write('g.pb', definition.SerializeToString())
        problem, = self.problems(path)
        self.assertEqual((problem['kind'], problem['nodes']), ('attribute', ['root']))
        self.assertIn('int32', problem['what'])
        self.assertIn('2 nodes ask for a GPU', weft('check', path, code=1))

    def test_loops_of_version_one(self):
        with tf1.Graph().as_default() as graph:
            tf1.disable_control_flow_v2()
            tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], name='loop')
        path = self.write('g.pb', graph.as_graph_def().SerializeToString())
        self.assertEqual(self.problems(path, code=0), [])

    def test_graphs_that_no_one_could_run(self):
        def node(graph, name, op, *inputs, **attrs):
            added = graph.node.add(name=name, op=op, input=inputs)
            for key, value in attrs.items():
                added.attr[key].type = value.as_datatype_enum
        cycle = tf1.GraphDef()
        node(cycle, 'a', 'Identity', 'b', T=tf.float32)
        node(cycle, 'b', 'Identity', 'a', T=tf.float32)
        dangling = tf1.GraphDef()
        node(dangling, 'a', 'Identity', 'nowhere', T=tf.float32)
        for graph, word in (cycle, 'a <- b'), (dangling, 'nowhere'):
            path = self.write('bad.pb', graph.SerializeToString())
            problem, = self.problems(path)
            self.assertEqual(problem['kind'], 'malformed')
            self.assertIn(word, problem['what'])

    def test_saved_models(self):
        with tf1.Graph().as_default(), tf1.Session() as session:
            x = tf1.placeholder(tf.float32, [None, 2], name='x')
            w = tf1.get_variable('w', [2, 1], use_resource=True)
            y = tf.matmul(x, w)
            session.run(tf1.global_variables_initializer())
            builder = tf1.saved_model.Builder(self.at('one'))
            signature = tf1.saved_model.predict_signature_def({'in': x}, {'out': y})
            builder.add_meta_graph_and_variables(session, ['serve'], {'serving_default': signature},
                                                 saver=tf1.train.Saver())
            builder.save()
        seen = inspect(self.at('one'))
        self.assertEqual((seen['form'], seen['graphs'][0]['tags']), ('SavedModel', ['serve']))
        signature = seen['graphs'][0]['signatures']['serving_default']
        self.assertEqual([(t['name'], t['dtype'], t['shape']) for t in signature['inputs']], [('in = x:0', 'float', [-1, 2])])
        self.assertIn('It would run.', weft('check', self.at('one')))

        class Module(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
            def half(self, x):
                return tf.where(x > 0, x / 2, tf.raw_ops.Lgamma(x=x))

        module = Module()
        tf.saved_model.save(module, self.at('two'), signatures=module.half)
        report = json.loads(weft('check', self.at('two'), '--json', code=0 if self.runs(self.at('two')) else 1))
        self.assertGreaterEqual(report['graphs'][0]['functions'], 2)
        for problem in report['graphs'][0]['problems']:
            self.assertTrue(problem['nodes'], problem)

    def runs(self, path):
        return subprocess.run([WEFT, 'check', path], stdout=subprocess.PIPE).returncode == 0

    def test_what_it_cannot_read(self):
        self.assertIn('missing', weft('check', self.at('missing'), code=2))
        self.assertIn('saved_model.pb', weft('check', self.folder, code=2))
        prefix = tf.train.Checkpoint(x=tf.Variable(1.0)).write(self.at('objects'))
        self.assertIn('expected %s.meta' % prefix, weft('check', prefix, code=2))
        self.assertIn('weft inspect ' + prefix, weft('check', prefix, code=2))
        index = prefix + '.index'
        self.assertIn('What else it may be: weft inspect ' + index, weft('check', index, code=2))


class PlanTest(FileTest):
    """`weft plan` of graphs that never ran, in whatever form they come."""
    NODES = 'sn,cpu_milli,memory_mib,gpu,model\n' + ''.join('n%d,16000,65536,0,\n' % i for i in range(2))

    def training(self):
        with tf1.Graph().as_default() as graph, tf1.Session() as session:
            x = tf1.placeholder(tf.float32, [None, 784], name='x')
            w = tf1.get_variable('w', initializer=np.zeros([784, 10], np.float32), use_resource=False)
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name='loss')
            tf1.train.GradientDescentOptimizer(.1).minimize(loss, name='train')
            tf1.add_to_collection('unused', tf.matmul(tf.zeros([4000, 4000]), tf.ones([4000, 4000]), name='beside'))
            session.run(tf1.global_variables_initializer())
            tf1.train.write_graph(graph, self.folder, 'graph.pbtxt')
            prefix = tf1.train.Saver().save(session, self.at('model.ckpt'))
            return [self.write('graph.pb', graph.as_graph_def().SerializeToString()), self.at('graph.pbtxt'), prefix + '.meta']

    def plan(self, path, *words, code=0):
        nodes = self.write('nodes.csv', self.NODES.encode())
        return weft('plan', path, '--nodes', nodes, '--json', *words, code=code)

    def test_every_form_gives_the_same_plan(self):
        binary, *others = self.training()
        plan = json.loads(self.plan(binary, '--target', 'train', '--batch', '64'))
        self.assertEqual(plan['batch'], 64)
        variable, = plan['variables'] if plan['variables'] else [{'name': 'w'}]
        self.assertEqual(variable['name'], 'w')
        self.assertGreater(plan['step_seconds'], 0)
        # What the step does not need costs nothing: 128 GFLOP would.
        self.assertLess(plan['step_seconds'], 0.05)
        for path in others:
            self.assertEqual(json.loads(self.plan(path, '--target', 'train', '--batch', '64'))['step_seconds'], plan['step_seconds'])
        # Without a target what changes variables by gradients is the step.
        self.assertAlmostEqual(json.loads(self.plan(binary, '--batch', '64'))['step_seconds'], plan['step_seconds'], delta=plan['step_seconds'] * .2)
        larger = json.loads(self.plan(binary, '--target', 'train', '--batch', '6400'))
        self.assertGreater(larger['step_seconds'], 3 * plan['step_seconds'])

    def test_what_is_no_graph_or_not_in_it_is_named(self):
        binary, *_ = self.training()
        def error(*words):
            done = subprocess.run([WEFT, 'plan', *words], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 1, done.stdout)
            return done.stderr
        self.assertIn("There is no op 'trian' in the graph", error(binary, '--target', 'trian'))
        self.assertIn('broken.pb', error(self.write('broken.pb', b'\x0a\xff\xff\xff')))
        self.assertIn('missing.pb', error(self.at('missing.pb')))


if __name__ == '__main__':
    WEFT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
