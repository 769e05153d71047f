#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limit of ops that only move memory: each line of stdin is a number of bytes, half of which are read and half written."""
import os
import sys

from rounds import measured


def copy_of(count):
    """A function that copies `count` floats with all processors."""
    try:
        import torch
    except ImportError:
        import numpy
        source, target = numpy.ones(count, numpy.float32), numpy.empty(count, numpy.float32)
        return lambda: numpy.copyto(target, source)
    torch.set_num_threads(os.cpu_count())
    source, target = torch.ones(count), torch.empty(count)
    return lambda: target.copy_(source)


for line in sys.stdin:
    copy = copy_of(int(line) // 8)
    for _ in range(5):
        copy()
    measured(copy, 0)
