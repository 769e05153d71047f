#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every trap of TensorFlow's session protocol, as a test named after its number.

    traps_test.py [SERVER BINARY] [unittest's arguments]      default: the real TensorFlow's server
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import processes  # noqa: E402

BINARY = processes.binary_from(sys.argv)

import harness  # noqa: E402

harness.BINARY = BINARY
harness.tf1.disable_eager_execution()

from failure_traps import *  # noqa: E402,F401,F403
from session_traps import *  # noqa: E402,F401,F403
from wire_traps import *  # noqa: E402,F401,F403

if __name__ == '__main__':
    unittest.main(verbosity=2)
