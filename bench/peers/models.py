# SPDX-License-Identifier: Apache-2.0
"""The models of the row `models`, written once for every side: a model asks its backend for layers and weights.

A backend is TensorFlow's (tensorflow_models.py) or PyTorch's (torch_models.py). Images are [batch, height, width, channels] in what is
fed, padding is TensorFlow's SAME, first weights come from one generator in the order in which they are asked for, so that all
sides compute the same losses.
"""
import numpy as np


def weights(generator, shape, scale):
    """First values: normal with the standard deviation `scale`, or all `scale` where it is given as a tuple of one."""
    if isinstance(scale, tuple):
        return np.full(shape, scale[0], np.float32)
    return (generator.standard_normal(shape) * scale).astype(np.float32)


class Model:
    """batch: examples of a step. optimizer: (name, learning rate). feeds(generator): arrays by name; `labels` are for the loss.
    build(backend, feeds): what the loss is taken of, logits [.., classes]."""
    optimizer = ('momentum', 0.01)
    classes = 10
    has_torch = True

    def images(self, generator, size, channels=3):
        return generator.random((self.batch, size, size, channels), np.float32)

    def labels(self, generator, *shape):
        return generator.integers(0, self.classes, (self.batch,) + shape, np.int32)


class LeNet(Model):
    """Two convolutions of 5x5 (32 and 64), a layer of 1024: TensorFlow's own first tutorial."""
    batch, optimizer = 64, ('sgd', 0.01)

    def feeds(self, g):
        return {'x': self.images(g, 28, 1), 'labels': self.labels(g)}

    def build(self, b, feeds):
        x = b.max_pool(b.relu(b.conv(feeds['x'], 32, 5, bias=True)), 2, 2)
        x = b.max_pool(b.relu(b.conv(x, 64, 5, bias=True)), 2, 2)
        return b.dense(b.relu(b.dense(b.flatten(x), 1024)), 10)


class VGG16(Model):
    """On 32x32 images."""
    batch, optimizer = 16, ('momentum', 0.001)
    size, dense = 32, (512,)

    def feeds(self, g):
        return {'x': self.images(g, self.size), 'labels': self.labels(g)}

    def build(self, b, feeds):
        x = feeds['x']
        for filters, count in (64, 2), (128, 2), (256, 3), (512, 3), (512, 3):
            for _ in range(count):
                x = b.relu(b.conv(x, filters, 3, bias=True))
            x = b.max_pool(x, 2, 2)
        x = b.flatten(x)
        for units in self.dense:
            x = b.relu(b.dense(x, units))
        return b.dense(x, self.classes)


class LargeVGG16(VGG16):
    """As published: on 224x224 images, 138 million weights."""
    batch, classes = 4, 1000
    size, dense = 224, (4096, 4096)


class ResNet(Model):
    """On 224x224 images, version 1 with the stride in the 3x3 convolution."""
    classes = 1000
    blocks, bottleneck, size = (2, 2, 2, 2), False, 224

    def feeds(self, g):
        return {'x': self.images(g, self.size), 'labels': self.labels(g)}

    def build(self, b, feeds):
        x = b.max_pool(b.relu(b.norm(b.conv(feeds['x'], 64, 7, 2))), 3, 2)
        for stage, count in enumerate(self.blocks):
            for block in range(count):
                x = self.residual(b, x, 64 << stage, 2 if stage > 0 and block == 0 else 1, block == 0)
        return b.dense(b.mean(x), self.classes)

    def residual(self, b, x, filters, stride, is_first):
        wide = filters * 4 if self.bottleneck else filters
        way = x
        if is_first and (stride > 1 or self.bottleneck):
            way = b.norm(b.conv(x, wide, 1, stride))
        if self.bottleneck:
            x = b.relu(b.norm(b.conv(x, filters, 1)))
            x = b.relu(b.norm(b.conv(x, filters, 3, stride)))
            return b.relu(b.norm(b.conv(x, wide, 1)) + way)
        x = b.relu(b.norm(b.conv(x, filters, 3, stride)))
        return b.relu(b.norm(b.conv(x, filters, 3)) + way)


class ResNet18(ResNet):
    batch = 4


class ResNet50(ResNet):
    optimizer = ('momentum', 0.001)  # with 0.01 rounding alone moves the third loss by some percent
    batch, blocks, bottleneck = 8, (3, 4, 6, 3), True


class MobileNetV2(Model):
    """On 128x128 images."""
    batch, classes = 8, 1000

    def feeds(self, g):
        return {'x': self.images(g, 128), 'labels': self.labels(g)}

    def build(self, b, feeds):
        x = b.relu6(b.norm(b.conv(feeds['x'], 32, 3, 2)))
        channels = 32
        for expand, filters, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                               (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(count):
                y = x if expand == 1 else b.relu6(b.norm(b.conv(x, channels * expand, 1)))
                y = b.relu6(b.norm(b.depthwise(y, 3, stride if block == 0 else 1)))
                y = b.norm(b.conv(y, filters, 1))
                x = x + y if block > 0 else y
                channels = filters
        x = b.relu6(b.norm(b.conv(x, 1280, 1)))
        return b.dense(b.mean(x), self.classes)


class UNet(Model):
    """Three levels of 16, 32 and 64 channels on 64x64 images; a class for each pixel."""
    batch, classes = 4, 4

    def feeds(self, g):
        return {'x': self.images(g, 64), 'labels': self.labels(g, 64, 64)}

    def build(self, b, feeds):
        def twice(x, filters):
            return b.relu(b.conv(b.relu(b.conv(x, filters, 3, bias=True)), filters, 3, bias=True))
        first = twice(feeds['x'], 16)
        second = twice(b.max_pool(first, 2, 2), 32)
        x = twice(b.max_pool(second, 2, 2), 64)
        x = twice(b.concat([second, b.upsample(x, 32)]), 32)
        x = twice(b.concat([first, b.upsample(x, 16)]), 16)
        return b.conv(x, self.classes, 1, bias=True)


class Transformer(Model):
    """Four layers, 256 wide, four heads, 64 tokens; the next of 1,000 words at each place."""
    batch, classes, optimizer = 8, 1000, ('adam', 0.001)
    layers, width, heads, length = 4, 256, 4, 64

    def feeds(self, g):
        return {'ids': self.labels(g, self.length), 'labels': self.labels(g, self.length)}

    def build(self, b, feeds):
        x = b.embedding(feeds['ids'], self.classes, self.width) + b.variable((self.length, self.width), 0.02)
        for _ in range(self.layers):
            y = b.layer_norm(x)
            q, k, v = (b.dense(y, self.width) for _ in range(3))
            x = x + b.dense(b.attention(q, k, v, self.heads), self.width)
            x = x + b.dense(b.gelu(b.dense(b.layer_norm(x), 4 * self.width)), self.width)
        return b.dense(b.layer_norm(x), self.classes)


class LSTM(Model):
    """A text of 50 words out of 5,000, 128 wide; the loop is a tf.while_loop."""
    batch, classes, optimizer, kind = 32, 5, ('adam', 0.001), 'lstm'

    def feeds(self, g):
        return {'ids': g.integers(0, 5000, (self.batch, 50), np.int32), 'labels': self.labels(g)}

    def build(self, b, feeds):
        return b.dense(b.recurrent(b.embedding(feeds['ids'], 5000, 128), self.kind, 128), self.classes)


class GRU(LSTM):
    kind = 'gru'


class Embedding(Model):
    """Eight tables of 100,000 rows, 16 wide, and two layers; Adagrad."""
    batch, classes, optimizer = 1024, 2, ('adagrad', 0.05)
    tables = 8

    def feeds(self, g):
        return {'ids': g.integers(0, 100000, (self.batch, self.tables), np.int32), 'labels': self.labels(g)}

    def build(self, b, feeds):
        x = b.concat([b.embedding(feeds['ids'][:, i], 100000, 16) for i in range(self.tables)])
        return b.dense(b.relu(b.dense(b.relu(b.dense(x, 128)), 64)), self.classes)


class WideAndDeep(Embedding):
    """26 tables of 100,000 rows for the deep part (Adagrad) and one weight for each row of 26 more for the wide part (Ftrl)."""
    tables, has_torch = 26, False  # PyTorch has no Ftrl

    def build(self, b, feeds):
        deep = super().build(b, feeds)
        return deep + b.wide([feeds['ids'][:, i] for i in range(self.tables)], 100000, self.classes)


class DeepFM(Embedding):
    """26 tables as above beside 13 numbers: their own weights, the products of all pairs of rows, and two layers; Adagrad."""
    tables, width, numbers = 26, 16, 13

    def feeds(self, g):
        return {'numbers': g.random((self.batch, self.numbers), np.float32), **super().feeds(g)}

    def build(self, b, feeds):
        columns = [feeds['ids'][:, i] for i in range(self.tables)]
        x = b.concat([b.embedding(ids, 100000, self.width) for ids in columns])
        rows = b.split(x, self.tables, self.width)
        pairs = b.sum(rows, 1) ** 2 - b.sum(rows * rows, 1)
        first = b.concat([b.embedding(ids, 100000, 1) for ids in columns] + [feeds['numbers'], b.sum(pairs, -1, keep=True) * 0.5])
        x = b.relu(b.dense(b.concat([x, feeds['numbers']]), 128))
        return b.dense(b.relu(b.dense(x, 64)), self.classes) + b.dense(first, self.classes)


MODELS = {'lenet': LeNet, 'vgg16': VGG16, 'vgg16_large': LargeVGG16, 'resnet18': ResNet18, 'resnet50': ResNet50,
          'mobilenet': MobileNetV2, 'unet': UNet, 'transformer': Transformer, 'lstm': LSTM, 'gru': GRU, 'embedding': Embedding, 'wide_deep': WideAndDeep,
          'deepfm': DeepFM}


def model_of(name, mode):
    """The model of a mode: `train`, or `infer` with the batch where it is not the model's own: `infer32`."""
    model = MODELS[name]()
    model.batch = int(mode.removeprefix('train').removeprefix('infer') or model.batch)
    return model
