# SPDX-License-Identifier: Apache-2.0
"""Puts weft servers under TensorFlow programs: `import weft; weft.install()`, or `python -m weft program.py`."""

__version__ = '0.1.0'


def needs_old_names():
    """Whether this TensorFlow is one that has lost the names of TensorFlow 1."""
    import tensorflow
    return int(tensorflow.__version__.split('.')[0]) >= 2


def install():
    """From here on tf.train.Server (tf.compat.v1, tf.distribute) starts a weft server, and `import horovod.tensorflow` is ours.

    With WEFT_DISTRIBUTION=auto sessions without a target run on the servers of the job, which distribute their graphs.
    """
    import os
    import sys
    from weft import tensorflow_server
    tensorflow_server.install()
    if os.environ.get('WEFT_DISTRIBUTION') in ('auto', 'required'):
        tensorflow_server.distribute(os.environ['WEFT_DISTRIBUTION'])
    if sys.version_info[0] > 2:
        from weft import horovod_names
        horovod_names.install()
