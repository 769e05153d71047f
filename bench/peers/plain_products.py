#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of matrices as other libraries have them: plain_products.py (numpy|torch) THREADS

numpy brings OpenBLAS, torch MKL and oneDNN. Reads names of products (ops.py) a line and answers with a round of that one.
"""
import os
import sys

THREADS = sys.argv[2]
for name in 'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS':
    os.environ[name] = THREADS

import numpy as np  # noqa: E402

from ops import case_of, product_named  # noqa: E402
from rounds import measured  # noqa: E402


def main(library):
    for line in sys.stdin:
        name = line.strip()
        product, generator = product_named(name), np.random.default_rng(3)
        left, right = [given(generator) for given in case_of(name).inputs]
        if library == 'torch':
            import torch
            torch.set_num_threads(int(THREADS))
            left, right = torch.from_numpy(left), torch.from_numpy(right)
        left, right = left.T if product.form[0] == 't' else left, right.T if product.form[1] == 't' else right
        out = left @ right
        multiply = (lambda: torch.mm(left, right, out=out)) if library == 'torch' else (lambda: np.matmul(left, right, out=out))

        def step():
            for _ in range(product.copies):
                multiply()
        step()
        measured(step, float(out.mean()))


main(sys.argv[1])
