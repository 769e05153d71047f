# SPDX-License-Identifier: Apache-2.0
"""Pictures and sound as the bytes of files, whole, cut off and wrong; spectra."""
import struct
import zlib

import numpy as np
import tensorflow as tf

from cases import Case, cases, values


def photo(height, width, channels, key=0):
    """Smooth enough that a codec has something to do, with edges."""
    y, x = np.mgrid[:height, :width]
    layers = [(np.sin(x / (3 + k + key)) * 60 + np.cos(y / (4 + k)) * 50 + 120 + 30 * ((x // 8 + y // 8) % 2)) for k in range(channels)]
    return np.clip(np.stack(layers, -1), 0, 255).astype(np.uint8)


def _bytes(build):
    """What TensorFlow makes, so that the cases need no files."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(build())


def jpeg(image, **attrs):
    return _bytes(lambda: tf.io.encode_jpeg(image, **attrs))


def png_chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def png(width, height, depth, color, rows, *chunks):
    """A file by hand: kinds of PNG that TensorFlow only reads."""
    header = struct.pack('>IIBBBBB', width, height, depth, color, 0, 0, 0)
    data = zlib.compress(b''.join(b'\0' + bytes(row) for row in rows))
    return b'\x89PNG\r\n\x1a\n' + png_chunk(b'IHDR', header) + b''.join(png_chunk(*c) for c in chunks) + png_chunk(
        b'IDAT', data) + png_chunk(b'IEND', b'')


PALETTE = (b'PLTE', bytes(range(0, 48)))
PNGS = {
    'grey1': png(9, 2, 1, 0, [[0b10110011, 0b10000000], [0b01010101, 0]]),
    'grey4': png(3, 2, 4, 0, [[0x1f, 0x30], [0x84, 0xe0]]),
    'grey8': png(2, 2, 8, 0, [[1, 200], [255, 0]]),
    'grey16': png(2, 1, 16, 0, [[1, 2, 254, 9]]),
    'grey and alpha': png(2, 1, 8, 4, [[10, 128, 20, 255]]),
    'rgb': png(2, 1, 8, 2, [[1, 2, 3, 200, 100, 50]]),
    'rgb16': png(1, 1, 16, 2, [[1, 2, 3, 4, 250, 6]]),
    'rgba': png(1, 2, 8, 6, [[1, 2, 3, 4], [250, 251, 252, 253]]),
    'palette': png(3, 1, 8, 3, [[0, 5, 15]], PALETTE),
    'palette2': png(4, 1, 2, 3, [[0b00011011]], PALETTE),
    'palette and alpha': png(3, 1, 8, 3, [[0, 1, 2]], PALETTE, (b'tRNS', bytes([0, 128, 255]))),
}


def gif(frames, width, height, interlaced=False):
    """Frames are (left, top, width, height, indices, transparent or None); four colours."""
    out = b'GIF89a' + struct.pack('<HHBBB', width, height, 0b10000001, 0, 0) + bytes([0, 0, 0, 255, 0, 0, 0, 255, 0, 10, 20, 30])
    for left, top, w, h, indices, transparent in frames:
        if transparent is not None:
            out += b'\x21\xf9\x04' + struct.pack('<BHB', 1, 5, transparent) + b'\0'
        out += b'\x2c' + struct.pack('<HHHHB', left, top, w, h, 0x40 if interlaced else 0)
        bits, count, data = 0, 0, bytearray()
        for code in [c for i in indices for c in (4, i)] + [5]:  # a clear code before each pixel keeps codes 3 bits wide
            bits |= code << count
            count += 3
            while count >= 8:
                data.append(bits & 255)
                bits, count = bits >> 8, count - 8
        data.append(bits & 255)
        out += b'\x02' + b''.join(bytes([len(data[i:i + 255])]) + bytes(data[i:i + 255]) for i in range(0, len(data), 255)) + b'\0'
    return out + b'\x3b'


ONE_GIF = gif([(0, 0, 3, 2, [0, 1, 2, 3, 1, 0], None)], 3, 2)
GIFS = [ONE_GIF, gif([(0, 0, 2, 6, [0, 1, 2, 3, 1, 0, 3, 3, 1, 1, 2, 2], None)], 2, 6, True),
        gif([(0, 0, 3, 2, [0, 1, 2, 3, 1, 0], None), (1, 0, 2, 2, [1, 1, 2, 0], 2), (0, 1, 1, 1, [3], None)], 3, 2),
        gif([(0, 0, 2, 2, [0, 1, 2, 3], 1)], 2, 2)]


def bmp(width, height, channels, key=0):
    stride = (channels * width + 3) // 4 * 4
    rows = [bytes((i * 7 + y * 31 + key) % 256 for i in range(channels * width)).ljust(stride, b'\0') for y in range(abs(height))]
    header = b'BM' + struct.pack('<IHHI', 54 + stride * abs(height), 0, 0, 54) + struct.pack(
        '<IiiHHIIiiII', 40, width, height, 1, channels * 8, 0, 0, 0, 0, 0, 0)
    return header + b''.join(rows)


def _text(data):
    return np.array(data, object)


@cases('DecodeJpeg')
def decode_jpeg(op, types):
    colour, grey = photo(37, 50, 3), photo(24, 17, 1)
    for image, attrs in (colour, {}), (colour, {'quality': 30}), (colour, {'progressive': True}), (
            colour, {'chroma_downsampling': False}), (grey, {}):
        data = jpeg(image, **attrs)
        yield Case([_text(data)])
        for more in {'channels': 1}, {'channels': 3}, {'fancy_upscaling': False}, {'dct_method': 'INTEGER_ACCURATE'}, {
                'dct_method': 'INTEGER_FAST'}, {'ratio': 2}, {'ratio': 4}, {'ratio': 8}:
            yield Case([_text(data)], more)
    data = jpeg(colour)
    for cut in 3, 60, len(data) // 2:
        yield Case([_text(data[:cut])], error=True)
    for fraction in 0.1, 0.3:
        yield Case([_text(data[:len(data) * 3 // 4])], {'acceptable_fraction': fraction})
        yield Case([_text(data[:len(data) * 3 // 4])], {'try_recover_truncated': True, 'acceptable_fraction': fraction})
    yield Case([_text(data[:len(data) // 2])], {'try_recover_truncated': True})
    yield Case([_text(data[:len(data) // 3])], {'try_recover_truncated': True}, error=True)
    yield Case([_text(PNGS['rgb'])])
    yield Case([_text(ONE_GIF)])
    yield Case([_text(GIFS[2])], error=True)
    yield Case([_text(bmp(2, 2, 3))], error=True)
    yield Case([_text(b'')], error=True)
    yield Case([_text(b'nothing at all')], error=True)
    yield Case([_text([data])], error=True)
    yield Case([_text(data)], {'ratio': 3}, error=True)
    yield Case([_text(data)], {'channels': 4}, error=True)
    yield Case([_text(data)], {'channels': 2}, error=True)
    yield Case([_text(data)], {'dct_method': 'SLOW'}, error=True)


@cases('DecodeAndCropJpeg')
def decode_and_crop(op, types):
    for attrs in {}, {'progressive': True}, {'chroma_downsampling': False}:
        data = _text(jpeg(photo(37, 50, 3), **attrs))
        for window in [0, 0, 37, 50], [5, 9, 20, 30], [30, 44, 7, 6], [1, 1, 1, 1], [16, 16, 16, 16]:
            for more in {}, {'channels': 1}, {'fancy_upscaling': False}:
                yield Case([data, np.array(window, np.int32)], more)
        yield Case([data, np.array([1, 2, 8, 9], np.int32)], {'ratio': 2})
    for window in [0, 0, 38, 50], [-1, 0, 5, 5], [0, 0, 0, 5], [0, 0, 5]:
        yield Case([data, np.array(window, np.int32)], error=True)
    yield Case([_text(PNGS['rgb']), np.array([0, 0, 1, 1], np.int32)], error=True)


@cases('ExtractJpegShape')
def jpeg_shape(op, types):
    for image in photo(37, 50, 3), photo(24, 17, 1):
        yield Case([_text(jpeg(image))], {'output_type': types['output_type']})
    yield Case([_text(b'\xff\xd8\xff')], {'output_type': types['output_type']}, error=True)
    yield Case([_text(PNGS['rgb'])], {'output_type': types['output_type']}, error=True)


@cases('EncodeJpeg')
def encode_jpeg(op, types):
    for image in photo(37, 50, 3), photo(24, 17, 1):
        for attrs in {}, {'quality': 40}, {'progressive': True}, {'optimize_size': True}, {'chroma_downsampling': False}, {
                'density_unit': 'cm', 'x_density': 20, 'y_density': 30}, {'xmp_metadata': '<x/>'}:
            yield Case([image], attrs)
    yield Case([photo(8, 8, 3)], {'format': 'grayscale'}, error=True)
    yield Case([photo(8, 8, 2)], error=True)
    yield Case([photo(8, 8, 1)[0]], error=True)
    yield Case([photo(8, 8, 1)], {'quality': 101}, error=True)


@cases('EncodeJpegVariableQuality')
def encode_jpeg_variable(op, types):
    for quality in 0, 33, 100:
        yield Case([photo(16, 9, 3), np.int32(quality)])
    yield Case([photo(16, 9, 3), np.int32(101)], error=True)
    yield Case([photo(16, 9, 3), np.array([3], np.int32)], error=True)


@cases('DecodePng')
def decode_png(op, types):
    for name, data in PNGS.items():
        for channels in 0, 1, 3, 4:
            yield Case([_text(data)], {'channels': channels, 'dtype': types['dtype']}, name=name)
    data = PNGS['rgb']
    for bad in data[:20], data[:-20], data[:40] + b'\xff' + data[41:]:
        yield Case([_text(bad)], {'dtype': types['dtype']}, error=True)
    huge = png(1 << 20, 1 << 20, 8, 6, [[0] * 8])
    yield Case([_text(huge)], {'dtype': types['dtype']}, error=True)


@cases('EncodePng')
def encode_png(op, types):
    for channels in 1, 2, 3, 4:
        image = photo(19, 23, channels).astype(types['T']) * (1 if types['T'] == 'uint8' else 257)
        for compression in -1, 0, 9:
            yield Case([image], {'compression': compression})
    yield Case([photo(5, 4, 3).astype(types['T'])[0]], error=True)
    yield Case([photo(5, 4, 5).astype(types['T'])], error=True)


@cases('DecodeGif')
def decode_gif(op, types):
    for data in GIFS:
        yield Case([_text(data)])
    yield Case([_text(PNGS['rgb'])])
    yield Case([_text(ONE_GIF[:12])], error=True)
    yield Case([_text(b'GIF8')], error=True)


@cases('DecodeBmp')
def decode_bmp(op, types):
    for width, height, channels in (3, 2, 3), (5, -3, 3), (2, 2, 4), (7, 1, 4):
        yield Case([_text(bmp(width, height, channels))])
        yield Case([_text(bmp(width, height, channels))], {'channels': channels})
    yield Case([_text(bmp(3, 2, 3))], {'channels': 1}, error=True)
    yield Case([_text(bmp(3, 2, 3)[:60])], error=True)
    yield Case([_text(b'BM')], error=True)
    yield Case([_text(PNGS['rgb'])], error=True)


@cases('DecodeImage')
def decode_image(op, types):
    for data in jpeg(photo(20, 30, 3)), PNGS['rgb'], PNGS['rgb16'], PNGS['grey8'], GIFS[2], bmp(3, 2, 3):
        for expand in False, True:
            yield Case([_text(data)], {'dtype': types['dtype'], 'expand_animations': expand})
    yield Case([_text(b'what is this')], {'dtype': types['dtype']}, error=True)


def wav(channels=1, rate=8000, bits=16, frames=5, before=b'', after=b'', form=1):
    data = np.arange(-frames * channels // 2, frames * channels - frames * channels // 2).astype('<i2') * 1000
    size = channels * bits // 8
    body = b'WAVE' + before + b'fmt ' + struct.pack('<IHHIIHH', 16, form, channels, rate, rate * size, size, bits) + after + b'data' + struct.pack(
        '<I', data.nbytes) + data.tobytes()
    return b'RIFF' + struct.pack('<I', len(body)) + body


@cases('DecodeWav')
def decode_wav(op, types):
    for data in wav(), wav(2), wav(3, 44100, frames=40), wav(before=b'JUNK\x02\0\0\0ab'), wav(after=b'LIST\x02\0\0\0ab'):
        for attrs in {}, {'desired_channels': 1}, {'desired_channels': 4, 'desired_samples': 3}, {'desired_samples': 50}:
            yield Case([_text(data)], attrs)
    for bad in b'', b'RIFF', wav()[:-4], wav(bits=8), wav(form=3), wav(before=b'what\0\0\0\0'), wav()[:44 - 8]:
        yield Case([_text(bad)], error=True)
    yield Case([_text([wav()])], error=True)


@cases('EncodeWav')
def encode_wav(op, types):
    for shape in [7, 1], [5, 2], [0, 1]:
        yield Case([values('float32', shape, -1.2, 1.2), np.int32(16000)])
    yield Case([values('float32', [4]), np.int32(16000)], error=True)
    yield Case([values('float32', [4, 1]), np.array([16000], np.int32)], error=True)


@cases('AudioSpectrogram')
def spectrogram(op, types):
    for window, stride in (8, 4), (10, 3), (64, 64), (100, 7):
        for squared in False, True:
            yield Case([values('float32', [100, 2], -1, 1)], {'window_size': window, 'stride': stride, 'magnitude_squared': squared})
    yield Case([values('float32', [100, 2])], {'window_size': 1, 'stride': 1}, error=True)
    yield Case([values('float32', [100, 2])], {'window_size': 8, 'stride': 0}, error=True)
    yield Case([values('float32', [100])], {'window_size': 8, 'stride': 4}, error=True)


@cases('Mfcc')
def mfcc(op, types):
    spectrum = values('float32', [2, 3, 257], 0, 4)
    for attrs in {}, {'filterbank_channel_count': 20, 'dct_coefficient_count': 20}, {
            'upper_frequency_limit': 7000.0, 'lower_frequency_limit': 0.0}:
        yield Case([spectrum, np.int32(16000)], attrs)
    yield Case([spectrum, np.int32(16000)], {'filterbank_channel_count': 10}, error=True)
    yield Case([spectrum, np.int32(0)], error=True)
    yield Case([spectrum[0], np.int32(16000)], error=True)
    yield Case([spectrum, np.int32(16000)], {'upper_frequency_limit': 10.0}, error=True)
