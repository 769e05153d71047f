# SPDX-License-Identifier: Apache-2.0
"""Boxes drawn, chosen and sampled; patches, glimpses and pictures under transformations."""
import numpy as np

from cases import Case, Step, cases, numpy_type, script, types_for, values

types_for('T', ['float32', 'uint8', 'int64', 'float16', 'complex64', 'float64'], 'ExtractImagePatches', 'ExtractVolumePatches')


@cases('ExtractImagePatches')
def image_patches(op, types):
    for padding in 'SAME', 'VALID':
        for shape, size, strides, rates in ([1, 4, 5, 2], [2, 3], [1, 1], [1, 1]), ([2, 7, 6, 1], [3, 2], [2, 1], [1, 2]), (
                [1, 6, 6, 3], [1, 1], [3, 3], [1, 1]):
            yield Case([values(types['T'], shape)],
                       {'ksizes': [1, *size, 1], 'strides': [1, *strides, 1], 'rates': [1, *rates, 1], 'padding': padding})
    one = {'ksizes': [1, 2, 2, 1], 'strides': [1] * 4, 'rates': [1] * 4, 'padding': 'SAME'}
    yield Case([values(types['T'], [4, 4, 1])], one, error=True)
    yield Case([values(types['T'], [1, 4, 4, 1])], {**one, 'strides': [2, 1, 1, 1]}, error='any')


@cases('ExtractVolumePatches')
def volume_patches(op, types):
    for padding in 'SAME', 'VALID':
        for shape, size, strides in ([1, 3, 4, 5, 2], [2, 2, 3], [1, 1, 1]), ([2, 4, 7, 6, 1], [1, 3, 2], [2, 2, 1]):
            yield Case([values(types['T'], shape)], {'ksizes': [1, *size, 1], 'strides': [1, *strides, 1], 'padding': padding})
    yield Case([values(types['T'], [4, 4, 4, 1])], {'ksizes': [1, 2, 2, 2, 1], 'strides': [1] * 5, 'padding': 'SAME'}, error=True)


SIZES = {'int8': [90, 110, 3], 'uint8': [90, 200, 3]}
OBJECTS = np.array([[[0.1, 0.2, 0.5, 0.6], [0.4, 0.4, 0.9, 0.95]]], np.float32)


@cases('SampleDistortedBoundingBox', 'SampleDistortedBoundingBoxV2', 'StatelessSampleDistortedBoundingBox')
def sample_box(op, types):
    size = np.array(SIZES.get(types['T'], [300, 451, 3]), numpy_type(types['T']))
    stateless = op.startswith('Stateless')

    def case(seed, objects=OBJECTS, size=size, covered=0.1, error=False, **attrs):
        inputs = [size, objects]
        if op != 'SampleDistortedBoundingBox':
            inputs.append(np.float32(covered))
        else:
            attrs['min_object_covered'] = covered
        if stateless:
            inputs.append(np.array([seed, 7], numpy_type(types['Tseed'])))
        else:
            attrs.update(seed=seed, seed2=7)
        return Case(inputs, attrs, error=error)
    for seed in 1, 2, 77:
        yield case(seed)
        yield case(seed, covered=0.9)
        yield case(seed, covered=0.0, aspect_ratio_range=[0.5, 2.0], area_range=[0.3, 0.9])
        yield case(seed, OBJECTS[:, :0], use_image_if_no_bounding_boxes=True)
        yield case(seed, covered=1.0, area_range=[0.001, 0.01], max_attempts=3)
    yield case(1, OBJECTS[:, :0], error=True)
    yield case(1, OBJECTS * 2, error=True)
    yield case(1, OBJECTS[0], error=True)
    yield case(1, OBJECTS[:, :, :3], error=True)
    yield case(1, size=size[:2], error=True)
    yield case(1, covered=-1.0, error=True)
    yield case(1, area_range=[0.5, 1.5], error=True)
    yield case(1, aspect_ratio_range=[0.0, 1.5], error=True)
    yield case(1, max_attempts=0, error=True)


BOXES = np.array([[[0.1, 0.1, 0.6, 0.7], [0, 0, 1, 1], [0.5, 0.2, 0.4, 0.9]],
                  [[-0.2, 0.3, 0.5, 1.4], [1.2, 1.2, 1.5, 1.5], [0.3, 0.3, 0.3, 0.3]]], np.float32)


@cases('DrawBoundingBoxes', 'DrawBoundingBoxesV2')
def draw(op, types):
    for channels in 1, 3, 4:
        image = values(types['T'], [2, 9, 11, channels], 0, 1)
        colors = [] if op == 'DrawBoundingBoxes' else [values('float32', [2, channels], 0, 1)]
        yield Case([image, BOXES] + colors)
        yield Case([image, BOXES[:, :0]] + colors)
        if colors:
            yield Case([image, BOXES, colors[0][:0]])
            yield Case([image, BOXES, colors[0][:, 1:]], error=True)
    colors = colors[:1]
    yield Case([image[..., :2], BOXES] + colors, error=True)
    yield Case([image[:1], BOXES] + colors, error=True)
    yield Case([image, BOXES[..., :3]] + colors, error=True)


OFFSETS = np.array([[0.1, -0.3], [-0.9, 0.8]], np.float32)


@cases('ExtractGlimpse', 'ExtractGlimpseV2')
def glimpse(op, types):
    image = values('float32', [2, 9, 11, 3])
    zero = {'uniform_noise': False, 'noise': 'zero'}
    for centered in False, True:
        for normalized in False, True:
            for size in [3, 4], [6, 7], [1, 1]:
                offsets = OFFSETS if normalized else OFFSETS * 6
                yield Case([image, np.array(size, np.int32), np.abs(offsets) if not centered else offsets],
                           {'centered': centered, 'normalized': normalized, **zero})
    yield Case([image, np.array([3], np.int32), OFFSETS], zero, error=True)
    yield Case([image, np.array([3, 3], np.int32), OFFSETS[:1]], zero, error=True)
    yield Case([image[0], np.array([3, 3], np.int32), OFFSETS], zero, error=True)
    yield Case([image, np.array([3, 3], np.int32), OFFSETS], {'noise': 'zero'}, error=True)
    yield Case([image, np.array([3, 3], np.int32), OFFSETS], {'noise': 'loud', 'uniform_noise': False}, error=True)


@script('ExtractGlimpse', 'ExtractGlimpseV2')
def noise(b, types):
    """Outside of the picture stand values between its least and its largest."""
    image = values('float32', [2, 9, 11, 3], 5, 6)
    steps = []
    for op in 'ExtractGlimpse', 'ExtractGlimpseV2':
        for kind in 'uniform', 'gaussian':
            out = b.op(op, image, np.array([12, 14], np.int32), OFFSETS, noise=kind, uniform_noise=kind == 'uniform')
            inside = b.op('LogicalAnd', b.op('GreaterEqual', out, np.float32(image.min())), b.op('LessEqual', out, np.float32(image.max())))
            steps.append(Step(b.op('All', inside, np.arange(4, dtype=np.int32))))
    return steps


TURNS = np.array([[0.9, 0.2, 0.5, -0.1, 1.1, 0.3, 0, 0], [1, 0, -2, 0, 1, 3, 0.01, 0.02]], np.float32)


@cases('ImageProjectiveTransformV2', 'ImageProjectiveTransformV3')
def projective(op, types):
    more = [np.float32(3)] if op.endswith('3') else []
    image = values(types['dtype'], [2, 6, 7, 2], 0, 90)
    for interpolation in 'NEAREST', 'BILINEAR':
        for fill in 'CONSTANT', 'REFLECT', 'WRAP', 'NEAREST':
            for transforms in TURNS, TURNS[:1]:
                yield Case([image, transforms, np.array([5, 8], np.int32)] + more, {'interpolation': interpolation, 'fill_mode': fill})
    attrs = {'interpolation': 'NEAREST'}
    yield Case([image[0], TURNS, np.array([5, 8], np.int32)] + more, attrs, error=True)
    yield Case([image, TURNS[:, :7], np.array([5, 8], np.int32)] + more, attrs, error=True)
    yield Case([image, TURNS, np.array([0, 8], np.int32)] + more, attrs, error=True)
    yield Case([image, TURNS, np.array([5], np.int32)] + more, attrs, error=True)


KERNELS = ['lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic', 'mitchellcubic']
types_for('T', ['float32', 'uint8', 'int64', 'float64', 'float16'], 'ScaleAndTranslate')


def _pair(a, b):
    return np.array([a, b], np.float32)


@cases('ScaleAndTranslate')
def scale(op, types):
    image = values(types['T'], [2, 6, 7, 2], 0, 90)
    for kernel in KERNELS:
        for antialias in False, True:
            for size, factors, moves in ([12, 9], (2.0, 1.3), (0.0, 0.0)), ([3, 4], (0.5, 0.6), (0.3, -0.7)), ([5, 5], (1.0, 1.0), (-2.0, 3.0)):
                yield Case([image, np.array(size, np.int32), _pair(*factors), _pair(*moves)], {'kernel_type': kernel, 'antialias': antialias})
    size = np.array([3, 3], np.int32)
    yield Case([image, size, _pair(0, 1), _pair(0, 0)], error=True)
    yield Case([image, size[:1], _pair(1, 1), _pair(0, 0)], error=True)
    yield Case([image, size * 0, _pair(1, 1), _pair(0, 0)], error=True)
    yield Case([image[0], size, _pair(1, 1), _pair(0, 0)], error=True)
    yield Case([image, size, _pair(1, 1), _pair(0, 0)], {'kernel_type': 'square'}, error=True)


@cases('ScaleAndTranslateGrad')
def scale_gradient(op, types):
    for kernel in KERNELS:
        for antialias in False, True:
            yield Case([values('float32', [2, 5, 4, 2]), values('float32', [2, 6, 7, 2]), _pair(0.8, 0.6), _pair(0.3, -0.7)],
                       {'kernel_type': kernel, 'antialias': antialias})


@cases('NonMaxSuppressionWithOverlaps')
def with_overlaps(op, types):
    overlaps, scores = values('float32', [9, 9], 0, 1), values('float32', [9], 0, 1, 1)
    for most in 0, 4, 20:
        for threshold in 0.3, 0.8:
            yield Case([overlaps, scores, np.int32(most), np.float32(threshold), np.float32(0.2)])
    yield Case([overlaps[:3], scores, np.int32(3), np.float32(0.5), np.float32(0)], error=True)
    yield Case([overlaps, scores[:3], np.int32(3), np.float32(0.5), np.float32(0)], error=True)


@cases('CombinedNonMaxSuppression')
def combined(op, types):
    corner, extent = values('float32', [2, 10, 3, 2], 0, 1), values('float32', [2, 10, 3, 2], 0, 1, 1)
    boxes, scores = np.concatenate([corner, corner + extent], -1), values('float32', [2, 10, 3], 0, 1, 2)

    def inputs(each=3, total=5, overlap=0.4, least=0.2, boxes=boxes, scores=scores):
        return [boxes, scores, np.int32(each), np.int32(total), np.float32(overlap), np.float32(least)]
    for each, total in (3, 5), (1, 2), (10, 40):
        for attrs in {}, {'pad_per_class': True}, {'clip_boxes': False}:
            yield Case(inputs(each, total), attrs)
            yield Case(inputs(each, total, boxes=boxes[:, :, :1]), attrs)
    yield Case(inputs(boxes=boxes[:, :, :2]), error=True)
    yield Case(inputs(each=0), error=True)
    yield Case(inputs(total=0), error=True)
    yield Case(inputs(overlap=1.5), error=True)
    yield Case(inputs(scores=scores[0]), error=True)
