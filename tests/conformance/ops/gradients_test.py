# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow can differentiate, weft can: gradients_test.py WEFT REFERENCE compares both registries.

REFERENCE is the generated page of all ops, which says of each whether it has a gradient.
"""
import os
import pathlib
import re
import sys
import unittest

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
from tensorflow.python.framework import ops  # noqa: E402
from tensorflow.python.ops import composite_tensor_ops, control_flow_grad, image_grad, list_ops, map_ops, optional_grad  # noqa: E402,F401

# TensorFlow registers a function that returns None.
NONE = {'ArgMax', 'ArgMin', 'Ceil', 'Floor', 'FloorDiv', 'LoopCond', 'Rint', 'Round', 'TruncateDiv'}
MISSING = {
    **dict.fromkeys(['FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3'], 'second order: refused'),
    **dict.fromkeys(['SparseSparseMaximum', 'SparseSparseMinimum'], "TensorFlow's raise NotImplementedError"),
    'EagerPyFunc': 'runs nowhere but in a Python process',
    **dict.fromkeys(['DebugIdentityV2', 'DebugGradientRefIdentity'], "bound to TensorFlow's debugger in the client's process"),
    'QuantizeAndDequantizeV4Grad': "TensorFlow's is that of the op of three inputs, of which its own gradient has five",
    # TensorFlow's client makes these gradients itself, of ops that are here; programs in C++ have none yet.
    **dict.fromkeys('''CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor DenseToCSRSparseMatrix SparseTensorToCSRSparseMatrix
                    SparseMatrixMatMul SparseMatrixSparseMatMul SparseMatrixTranspose
                    NcclAllReduce NcclBroadcast NcclReduce'''.split(), 'not yet in C++'),
}
# Differentiated by TensorFlow's client in other ways than its registry, or not at all; Batch and Unbatch by contrib's of version 1.
MORE = {'GuaranteeConst', 'ParallelConcat', 'Snapshot', 'PartitionedCall', 'StatefulPartitionedCall', 'MaxPoolGradGradV2',
        'TensorArrayGradV3', 'TensorArrayGradWithShape', 'Batch', 'Unbatch'}
REFERENCE = pathlib.Path(sys.argv[2])


def theirs(op):
    try:
        return ops.gradient_registry.lookup(op) is not None
    except LookupError:
        return False


class Gradients(unittest.TestCase):
    def test_same_as_tensorflow(self):
        pages = re.findall(r'^## (\w+)$(.*?)(?=^## |\Z)', REFERENCE.read_text(), re.M | re.S)
        self.assertGreater(len(pages), 300)
        ours = {name: '- gradient: yes' in page for name, page in pages}
        missing = {name for name, has in ours.items() if not has and theirs(name)}
        more = {name for name, has in ours.items() if has and not theirs(name)}
        self.assertEqual(missing, (NONE | set(MISSING)) & set(ours))
        self.assertLessEqual(more, MORE)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
