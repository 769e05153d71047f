# SPDX-License-Identifier: Apache-2.0
"""Puts weft servers under TensorFlow programs: `import weft; weft.install()`, or `python -m weft program.py`."""

__version__ = '0.1.0'


def install():
    """From here on tf.train.Server (tf.compat.v1, tf.distribute) starts a weft server."""
    from weft import tensorflow_server
    tensorflow_server.install()
