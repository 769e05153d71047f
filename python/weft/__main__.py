# SPDX-License-Identifier: Apache-2.0
"""`python -m weft program.py [ARGS]` runs a TensorFlow program unchanged on weft servers."""
import os
import runpy
import sys

import weft

if len(sys.argv) < 2:
    sys.exit('usage: python -m weft program.py [ARGS]')
weft.install()
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name='__main__')
