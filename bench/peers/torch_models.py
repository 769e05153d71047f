#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of models.py in PyTorch: torch_models.py MODEL (train|infer|inferBATCH) (eager|compiled)

Images are in the channels-last form. What TensorFlow's SAME pads on one side only is padded before the convolution.
"""
import sys

import numpy as np
import torch
from torch.nn import functional

from models import model_of, weights
from rounds import serve


class Backend:
    def __init__(self, is_training):
        self.generator, self.is_training = np.random.default_rng(1), is_training
        self.made, self.next, self.sparse = [], 0, []

    def start(self):
        self.next = 0

    def kept(self, make):
        """What `make` gave when the model ran first: weights are made once."""
        if self.next == len(self.made):
            self.made.append(make())
        self.next += 1
        return self.made[self.next - 1]

    def variable(self, shape, scale, form=None, trainable=True):
        def make():
            value = weights(self.generator, shape, scale)
            value = torch.from_numpy(value if form is None else np.ascontiguousarray(value.transpose(form)))
            if value.dim() == 4:
                value = value.contiguous(memory_format=torch.channels_last)
            return value.requires_grad_(trainable)
        return self.kept(make)

    @staticmethod
    def padding(x, size, stride, value=0.0):
        """TensorFlow's SAME: x, padded if the two sides differ, and what the op itself pads."""
        total = [max((-(-n // stride) - 1) * stride + size - n, 0) for n in x.shape[2:]]
        if any(n % 2 for n in total):
            x = functional.pad(x, (total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2), value=value)
            return x, 0
        return x, (total[0] // 2, total[1] // 2)

    def conv(self, x, filters, size, stride=1, bias=False):
        channels = x.shape[1]
        kernel = self.variable((size, size, channels, filters), (2 / (size * size * channels)) ** 0.5, (3, 2, 0, 1))
        add = self.variable((filters,), (0.0,)) if bias else None
        x, pad = self.padding(x, size, stride)
        return functional.conv2d(x, kernel, add, stride, pad)

    def depthwise(self, x, size, stride):
        kernel = self.variable((size, size, x.shape[1], 1), (2 / (size * size)) ** 0.5, (2, 3, 0, 1))
        x, pad = self.padding(x, size, stride)
        return functional.conv2d(x, kernel, None, stride, pad, groups=x.shape[1])

    def upsample(self, x, filters):
        kernel = self.variable((2, 2, filters, x.shape[1]), (1 / x.shape[1]) ** 0.5, (3, 2, 0, 1))
        return functional.conv_transpose2d(x, kernel, self.variable((filters,), (0.0,)), 2)

    def norm(self, x):
        channels = (x.shape[1],)
        scale, offset = self.variable(channels, (1.0,)), self.variable(channels, (0.0,))
        mean, variance = self.variable(channels, (0.0,), None, False), self.variable(channels, (1.0,), None, False)
        return functional.batch_norm(x, mean, variance, scale, offset, self.is_training, 0.01, 1e-3)

    relu = staticmethod(torch.relu)
    relu6 = staticmethod(functional.relu6)

    @staticmethod
    def gelu(x):
        return functional.gelu(x, approximate='tanh')

    def max_pool(self, x, size, stride):
        x, pad = self.padding(x, size, stride, float('-inf'))
        return functional.max_pool2d(x, size, stride, pad)

    @staticmethod
    def mean(x):
        return x.mean((2, 3))

    @staticmethod
    def flatten(x):
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)

    @staticmethod
    def concat(parts):
        return torch.cat(parts, 1)

    @staticmethod
    def split(x, parts, width):
        return x.view(-1, parts, width)

    @staticmethod
    def sum(x, axis, keep=False):
        return x.sum(axis, keepdim=keep)

    def dense(self, x, units):
        kernel = self.variable((x.shape[-1], units), (1 / x.shape[-1]) ** 0.5, (1, 0))
        return functional.linear(x, kernel, self.variable((units,), (0.0,)))

    def embedding(self, ids, rows, width):
        table = self.variable((rows, width), 0.05)
        if rows >= 100000 and not any(table is other for other in self.sparse):
            self.sparse.append(table)
        return functional.embedding(ids, table, sparse=rows >= 100000)

    def layer_norm(self, x):
        scale, offset = self.variable((x.shape[-1],), (1.0,)), self.variable((x.shape[-1],), (0.0,))
        return functional.layer_norm(x, (x.shape[-1],), scale, offset, 1e-5)

    @staticmethod
    def attention(q, k, v, heads):
        batch, length, width = q.shape

        def split(x):
            return x.view(batch, length, heads, width // heads).transpose(1, 2)
        return functional.scaled_dot_product_attention(split(q), split(k), split(v)).transpose(1, 2).reshape(batch, length, width)

    def recurrent(self, x, kind, width):
        def make():  # PyTorch's gates stand in the model's order
            gates = 4 if kind == 'lstm' else 3
            inputs = x.shape[-1]
            values = [weights(self.generator, (inputs, gates * width), (1 / inputs) ** 0.5).T,
                      weights(self.generator, (width, gates * width), (1 / width) ** 0.5).T, np.zeros(gates * width, np.float32),
                      np.zeros(gates * width, np.float32)]
            module = (torch.nn.LSTM if kind == 'lstm' else torch.nn.GRU)(inputs, width, batch_first=True)
            with torch.no_grad():
                for own, value in zip(module.parameters(), values):
                    own.copy_(torch.from_numpy(np.ascontiguousarray(value)))
            return module
        return self.kept(make)(x)[0][:, -1]

    def trained(self):
        found = []
        for one in self.made:
            found += list(one.parameters()) if isinstance(one, torch.nn.Module) else [one] if one.requires_grad else []
        return found


class Tensors(dict):
    """What is fed, as PyTorch wants it."""

    def __init__(self, arrays):
        super().__init__({key: self.made(array) for key, array in arrays.items()})

    @staticmethod
    def made(array):
        tensor = torch.from_numpy(array)
        if array.dtype == np.int32:
            return tensor.long()
        return tensor.permute(0, 3, 1, 2) if tensor.dim() == 4 else tensor  # channels last, as it lies


def optimizers_of(name, rate, backend):
    sparse = {id(one) for one in backend.sparse}
    trained = backend.trained()
    if name == 'adagrad':
        return [torch.optim.Adagrad(group, rate, initial_accumulator_value=0.1, eps=0.0)
                for group in ([one for one in trained if id(one) in sparse], [one for one in trained if id(one) not in sparse])]
    return [{'sgd': lambda: torch.optim.SGD(trained, rate), 'momentum': lambda: torch.optim.SGD(trained, rate, momentum=0.9),
             'adam': lambda: torch.optim.Adam(trained, rate)}[name]()]


def make_step(name, mode, form):
    model = model_of(name, mode)
    feeds = Tensors(model.feeds(np.random.default_rng(2)))
    backend = Backend(mode == 'train')

    def logits():
        backend.start()
        return model.build(backend, feeds)

    def loss():
        made = logits()
        if made.dim() == 4:
            return functional.cross_entropy(made, feeds['labels'])
        return functional.cross_entropy(made.reshape(-1, made.shape[-1]), feeds['labels'].reshape(-1))
    with torch.no_grad():
        was, backend.is_training = backend.is_training, False
        logits()  # makes the weights
        backend.is_training = was
    if mode != 'train':
        call = torch.compile(logits) if form == 'compiled' else logits

        def infer():
            with torch.inference_mode():
                return (call() ** 2).mean().item()
        return infer
    optimizers = optimizers_of(*model.optimizer, backend)
    call = torch.compile(loss) if form == 'compiled' else loss

    def train():
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        now = call()
        now.backward()
        for optimizer in optimizers:
            optimizer.step()
        return now.item()
    return train


if __name__ == '__main__':
    serve(make_step(*sys.argv[1:4]), checks=3)
