# SPDX-License-Identifier: Apache-2.0
"""Pictures resized and cropped, their colours changed; boxes that overlap."""
import numpy as np

from cases import Case, cases, numpy_type, types_for, values

types_for('T', ['uint8', 'int16', 'int64', 'float16', 'float32', 'float64'], 'ResizeBilinear', 'ResizeBicubic', 'ResizeArea',
          'ResizeNearestNeighbor', 'CropAndResize', 'CropAndResizeGradBoxes')
SIZES = [([2, 3, 4, 2], [6, 8]), ([1, 6, 8, 1], [3, 4]), ([1, 5, 7, 3], [3, 11]), ([1, 1, 1, 1], [3, 2]), ([2, 4, 4, 1], [4, 4]),
         ([1, 3, 3, 2], [1, 1]), ([0, 3, 3, 2], [2, 2])]
MODES = [{}, {'align_corners': True}, {'half_pixel_centers': True}]


def _size(height, width):
    return np.array([height, width], np.int32)


@cases('ResizeBilinear', 'ResizeBicubic', 'ResizeNearestNeighbor', 'ResizeArea')
def resize(op, types):
    name = types['T']
    for shape, size in SIZES:
        for mode in MODES[:2] if op == 'ResizeArea' else MODES:
            yield Case([values(name, shape, 0, 100), _size(*size)], mode)
    image = values(name, [1, 2, 2, 1])
    yield Case([image, _size(0, 2)], error=True)
    yield Case([image, np.array([2], np.int32)], error=True)
    yield Case([image[0], _size(2, 2)], error=True)
    yield Case([image[:, :0], _size(2, 2)], error=True)


@cases('ResizeBilinearGrad', 'ResizeBicubicGrad')
def resize_gradient(op, types):
    for shape, size in SIZES[:-1]:
        for mode in MODES:
            yield Case([values('float32', [shape[0], *size, shape[3]]), values(types['T'], shape)], mode)


@cases('ResizeNearestNeighborGrad')
def nearest_gradient(op, types):
    for shape, size in SIZES[:-1]:
        for mode in MODES:
            yield Case([values(types['T'], [shape[0], *size, shape[3]], 0, 5), _size(*shape[1:3])], mode)
    yield Case([values(types['T'], [1, 2, 2, 1]), _size(0, 2)], error=True)


BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [1, 1, 0, 0], [-0.5, 0.25, 1.5, 0.5], [0.3, 0.3, 0.3, 0.3]], np.float32)
OWNERS = np.array([0, 1, 0, 1, 1], np.int32)


@cases('CropAndResize')
def crop_and_resize(op, types):
    image = values(types['T'], [2, 5, 6, 3], 0, 100)
    for method in 'bilinear', 'nearest':
        for size in [4, 3], [1, 1], [1, 7]:
            yield Case([image, BOXES, OWNERS, _size(*size)], {'method': method, 'extrapolation_value': 0.5})
    yield Case([image, BOXES[:0], OWNERS[:0], _size(2, 2)])
    yield Case([image, BOXES, OWNERS[:2], _size(2, 2)], error=True)
    yield Case([image, BOXES, OWNERS, _size(0, 2)], error=True)
    yield Case([image[0], BOXES, OWNERS, _size(2, 2)], error=True)


@cases('CropAndResizeGradImage')
def crop_gradient(op, types):
    for method in 'bilinear', 'nearest':
        for size in [4, 3], [1, 1]:
            yield Case([values('float32', [5, *size, 3]), BOXES, OWNERS, np.array([2, 5, 6, 3], np.int32)],
                       {'method': method, 'T': types['T']})


@cases('CropAndResizeGradBoxes')
def box_gradient(op, types):
    for size in [4, 3], [1, 1]:
        yield Case([values('float32', [5, *size, 3]), values(types['T'], [2, 5, 6, 3], 0, 100), BOXES, OWNERS])


def _colors(name, shape):
    x = values(name, shape, 0, 1)
    x[..., :3, :] = np.array([[0.5, 0.5, 0.5], [0, 0, 0], [1, 0.25, 0.25]], x.dtype)
    return x


@cases('RGBToHSV', 'HSVToRGB')
def color_spaces(op, types):
    for shape in [9, 3], [2, 4, 5, 3]:
        yield Case([_colors(types['T'], shape)])
    yield Case([values(types['T'], [3], 0, 1)])
    yield Case([values(types['T'], [0, 3], 0, 1)])
    yield Case([values(types['T'], [3, 4])], error=True)
    yield Case([values(types['T'], [])], error=True)


@cases('AdjustHue', 'AdjustSaturation')
def adjust(op, types):
    for amount in 0.0, 0.25, 0.9, 1.5:
        yield Case([_colors(types['T'], [2, 4, 5, 3]), np.float32(amount)])
    yield Case([_colors(types['T'], [4, 5, 3]), np.float32(0.5)])
    yield Case([values(types['T'], [4, 5, 2]), np.float32(1)], error=True)
    yield Case([_colors(types['T'], [4, 5, 3]), np.ones([1], np.float32)], error=True)


@cases('AdjustContrastv2')
def contrast(op, types):
    for shape in [4, 5, 3], [2, 4, 5, 1], [2, 2, 3, 3, 4]:
        for factor in 0.0, 0.5, 2.0:
            yield Case([values(types['T'], shape), np.float32(factor)])
    yield Case([values(types['T'], [4, 5]), np.float32(1)], error=True)
    yield Case([values(types['T'], [4, 5, 3]), np.ones([1], np.float32)], error=True)


def _boxes(name):
    corner, size = values(name, [12, 2], 0, 1), values(name, [12, 2], 0, 1, 1)
    return np.concatenate([corner, corner + size], 1).astype(numpy_type(name))


@cases('NonMaxSuppression', 'NonMaxSuppressionV2', 'NonMaxSuppressionV3', 'NonMaxSuppressionV4', 'NonMaxSuppressionV5')
def non_max_suppression(op, types):
    version = int(op[-1]) if op[-1].isdigit() else 1
    name = types.get('T', 'float32')
    number = numpy_type(types.get('T_threshold', name))
    boxes, scores = _boxes(name), values(name, [12], 0, 1)
    scores[3] = scores[7]

    def inputs(most=5, overlap=0.4, score=0.2, sigma=0.0, boxes=boxes, scores=scores):
        return [boxes, scores, np.int32(most)] + [np.array(x, number) for x in (overlap, score, sigma)][:max(0, version - 1 if version < 4 else version - 2)]
    for most in 0, 3, 20:
        for overlap in 0.0, 0.3, 1.0:
            attrs = {'iou_threshold': overlap} if version == 1 else {}
            yield Case(inputs(most, overlap), attrs)
            if version >= 4 and most < 20:
                yield Case(inputs(most, overlap), {'pad_to_max_output_size': True})
            if version == 5:
                yield Case(inputs(most, overlap, 0.1, 0.5))
    yield Case(inputs(boxes=boxes[:0], scores=scores[:0]))
    yield Case(inputs(boxes=boxes[:, [2, 3, 0, 1]]))
    yield Case(inputs(boxes=boxes[:, :3]), error=True)
    yield Case(inputs(scores=scores[:3]), error=True)
    if version > 1:
        yield Case(inputs(overlap=1.5), error=True)
