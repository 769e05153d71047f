#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the session benchmarks.

    torch_rounds.py mlp BATCH THREADS
    torch_rounds.py eager OP SIZE        100 calls of an op on [SIZE, SIZE]
"""
import sys

import torch

from rounds import serve


def mlp(batch, threads):
    torch.set_num_threads(threads)
    x = (torch.arange(batch * 784, dtype=torch.float32) % 97 / 97).reshape(batch, 784)
    y = torch.arange(batch) % 10
    w1, w2 = torch.full((784, 100), 0.01), torch.full((100, 10), 0.01)
    b1, b2 = torch.zeros(100), torch.zeros(10)
    for v in (w1, b1, w2, b2):
        v.requires_grad_()
    optimizer = torch.optim.SGD([w1, b1, w2, b2], lr=0.001)

    def step():
        optimizer.zero_grad(set_to_none=True)
        hidden = torch.relu(torch.addmm(b1, x, w1))
        loss = torch.nn.functional.cross_entropy(torch.addmm(b2, hidden, w2), y)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


EAGER = {'add': torch.add, 'mul': torch.mul, 'matmul': torch.matmul, 'relu': lambda x, _: torch.relu(x),
         'sum': lambda x, _: torch.sum(x, 1), 'softmax': lambda x, _: torch.softmax(x, 1),
         'transpose': lambda x, _: torch.t(x).contiguous(), 'concat': lambda x, y: torch.cat([x, y], 1)}


def eager(op, size):
    torch.set_num_threads(1)
    call = EAGER[op]
    x, y = torch.full((size, size), 0.5), torch.full((size, size), 0.25)

    @torch.no_grad()
    def step():
        for _ in range(100):
            z = call(x, y)
        return z.flatten()[0].item()
    return step


if __name__ == '__main__':
    if sys.argv[1] == 'eager':
        serve(eager(sys.argv[2], int(sys.argv[3])))
    else:
        serve(mlp(int(sys.argv[2]), int(sys.argv[3])))
