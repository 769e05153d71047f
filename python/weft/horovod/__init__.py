# SPDX-License-Identifier: Apache-2.0
"""Horovod's names for TensorFlow programs in graph mode, on weft's collectives: no MPI, nothing to launch.

Under `python -m weft` a program's own `import horovod.tensorflow as hvd` gets it; `import weft.horovod as hvd` does so anywhere.
The ranks are the tasks `chief`, `master` and `worker` of TF_CONFIG; without one the program is the only rank.
"""
from weft.horovod.tensorflow import *  # noqa: F401,F403
from weft.horovod.tensorflow import elastic  # noqa: F401
