#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when one of the traps 1 to 22 has no test."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRAPS = range(1, 23)

text = ''.join(open(os.path.join(HERE, name)).read() for name in os.listdir(HERE) if name.endswith('_traps.py'))
tested = {int(number) for number in re.findall(r'def test_trap_(\d\d)_', text)}
missing = sorted(set(TRAPS) - tested)
if missing:
    sys.exit('traps without a test: %s' % ', '.join(map(str, missing)))
print('%d traps, each with a test' % len(TRAPS))
