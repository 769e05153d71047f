# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 0.x and 1.x under today's package: after `import weft.compat`, `import tensorflow` gives the names, argument
orders and contrib modules of those days, and graphs, sessions and reference variables as they were.

Import it before the first `import tensorflow as tf` of the program; `python -m weft program.py` does so by itself for
a program that uses names which TensorFlow 2 does not have.
"""
from weft.compat import names


def install():
    """From here on `import tensorflow` gives TensorFlow 1's names. Later calls change nothing."""
    return names.install()


install()
