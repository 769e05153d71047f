# SPDX-License-Identifier: Apache-2.0
"""`python -m weft program.py [ARGS]` runs a TensorFlow program unchanged on weft servers.

A program that uses names which `tensorflow` has lost since TensorFlow 1 gets them back (weft.compat): --names=old or
--names=today before the program decides that instead.
"""
import os
import runpy
import sys

import weft
from weft import program_names

_NAMES = ('auto', 'old', 'today')
arguments = sys.argv[1:]
names = 'auto'
if arguments and arguments[0].startswith('--names='):
    names = arguments.pop(0)[len('--names='):]
if not arguments or names not in _NAMES:
    sys.exit('usage: python -m weft [--names=%s] program.py [ARGS]' % '|'.join(_NAMES))
weft.install()
if names == 'old' or names == 'auto' and weft.needs_old_names() and program_names.is_old(arguments[0]):
    import weft.compat  # noqa: F401
sys.argv = arguments
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name='__main__')
