# SPDX-License-Identifier: Apache-2.0
"""Tells from the text of a program whether it was written for TensorFlow before 2. Nothing of it is run."""
import ast
import os

# What `tensorflow` had before 2 and has no longer. A program that uses one of them cannot mean TensorFlow 2.
OLD_NAMES = frozenset('''
    ConfigProto GPUOptions GraphOptions RunOptions InteractiveSession Session Print app contrib examples flags gfile logging
    placeholder placeholder_with_default get_variable variable_scope variable_op_scope op_scope global_variables
    all_variables trainable_variables local_variables global_variables_initializer local_variables_initializer
    variables_initializer initialize_all_variables initialize_local_variables initialize_variables initialize_all_tables
    tables_initializer get_default_graph get_default_session get_collection add_to_collection reset_default_graph
    set_random_seed random_normal random_uniform truncated_normal multinomial log div mod ceil floordiv matrix_inverse
    mul sub neg inv pack unpack select listdiff complex_abs batch_matmul to_float to_int32 to_int64 to_double
    scalar_summary histogram_summary image_summary audio_summary merge_summary merge_all_summaries
    truncated_normal_initializer layers python_io
    sparse_placeholder sparse_to_dense sparse_tensor_to_dense sparse_tensor_dense_matmul string_split decode_raw
    parse_example parse_single_example FixedLenFeature VarLenFeature TFRecordReader TextLineReader FIFOQueue
    RandomShuffleQueue assign assign_add assign_sub scatter_update scatter_add
    '''.split())
_OLD_IN = {
    'train': frozenset('''Supervisor SummaryWriter Saver MonitoredTrainingSession MonitoredSession Scaffold AdamOptimizer
        GradientDescentOptimizer MomentumOptimizer AdagradOptimizer FtrlOptimizer RMSPropOptimizer SyncReplicasOptimizer
        SyncReplicasOptimizerV2 replica_device_setter start_queue_runners shuffle_batch string_input_producer Server
        exponential_decay get_or_create_global_step global_step'''.split()),
    'summary': frozenset('FileWriter merge merge_all'.split()),
    'nn': frozenset('rnn_cell dynamic_rnn static_rnn rnn softmax_cross_entropy_with_logits_v2 xw_plus_b'.split()),
    'saved_model': frozenset('builder simple_save'.split()),
}
_OLD_MODULES = ('tensorflow.contrib', 'tensorflow.examples')


class _Reader(ast.NodeVisitor):
    def __init__(self):
        self.aliases, self.imported, self.uses = set(), set(), []

    def visit_Import(self, node):
        for name in node.names:
            self.imported.add(name.name)
            if name.name == 'tensorflow':
                self.aliases.add(name.asname or 'tensorflow')

    def visit_ImportFrom(self, node):
        module = node.module or ''
        if not node.level:
            self.imported.update([module] + ['%s.%s' % (module, n.name) for n in node.names])

    def visit_Attribute(self, node):
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self.uses.append((inner.id, parts[::-1]))
        self.generic_visit(node)


def _is_old(reader):
    if any(name == m or name.startswith(m + '.') for name in reader.imported for m in _OLD_MODULES):
        return True
    for alias, path in reader.uses:
        if alias in reader.aliases and (path[0] in OLD_NAMES or len(path) > 1 and path[1] in _OLD_IN.get(path[0], ())):
            return True
    return False


def is_old(path):
    """Whether the program at `path`, or a module beside it that it imports, uses names of `tensorflow` from before 2."""
    seen, waiting = set(), [os.path.abspath(path)]
    while waiting:
        file = waiting.pop()
        if file in seen or not os.path.isfile(file):
            continue
        seen.add(file)
        reader = _Reader()
        try:
            with open(file, 'rb') as source:
                reader.visit(ast.parse(source.read()))
        except (SyntaxError, ValueError):
            continue  # running it will say what is wrong
        if _is_old(reader):
            return True
        folder = os.path.dirname(os.path.abspath(path))
        for name in reader.imported:
            inside = os.path.join(folder, *name.split('.'))
            waiting += [inside + '.py', os.path.join(inside, '__init__.py')]
    return False
