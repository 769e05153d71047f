# SPDX-License-Identifier: Apache-2.0
"""`python -m weft program.py [ARGS]` runs a TensorFlow program unchanged on weft servers.

A program that uses names which `tensorflow` has lost since TensorFlow 1 gets them back (weft.compat): --names=old or
--names=today before the program decides that instead. With --distribution=auto it may be written for one device: its sessions run
on the tasks of TF_CONFIG, over which weft distributes them.
"""
import os
import runpy
import sys

import weft
from weft import program_names

_CHOICES = {'--names': ('auto', 'old', 'today'), '--distribution': ('written', 'auto', 'required')}
arguments = sys.argv[1:]
chosen = {'--names': 'auto'}
while arguments and arguments[0].split('=')[0] in _CHOICES:
    flag, equals, value = arguments.pop(0).partition('=')
    chosen[flag] = value if equals else arguments.pop(0) if arguments else ''
if not arguments or any(value not in _CHOICES[flag] for flag, value in chosen.items()):
    sys.exit('usage: python -m weft %s program.py [ARGS]' % ' '.join(
        '[%s=%s]' % (flag, '|'.join(values)) for flag, values in sorted(_CHOICES.items())))
names = chosen['--names']
if '--distribution' in chosen:
    os.environ['WEFT_DISTRIBUTION'] = chosen['--distribution']
weft.install()
if names == 'old' or names == 'auto' and weft.needs_old_names() and program_names.is_old(arguments[0]):
    import weft.compat  # noqa: F401
sys.argv = arguments
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name='__main__')
