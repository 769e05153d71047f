# SPDX-License-Identifier: Apache-2.0
"""Asks a model for y of x, with the standard library alone: python3 predict.py MODEL 10 20 (LIBWEFT_C names the library)."""
import ctypes
import os
import sys

WEFT_FLOAT = 1
weft = ctypes.CDLL(os.environ.get('LIBWEFT_C', 'libweft_c.so'))
pointer, text = ctypes.c_void_p, ctypes.c_char_p
for name, result in (('weft_model_load', pointer), ('weft_model_input', text), ('weft_model_output', text), ('weft_tensor_new', pointer),
                     ('weft_model_predict', pointer), ('weft_tensor_data', pointer), ('weft_tensor_elements', ctypes.c_int64),
                     ('weft_error_message', text)):
    getattr(weft, name).restype = result


def check(error):
    if error is not None:
        message = weft.weft_error_message(pointer(error)).decode()
        weft.weft_error_free(pointer(error))
        sys.exit('predict: ' + message)


def main(folder, *numbers):
    model, x, y = pointer(), pointer(), pointer()
    check(weft.weft_model_load(os.path.join(folder, '1').encode(), None, ctypes.byref(model)))
    input_name, output_name = weft.weft_model_input(model, None, 0), weft.weft_model_output(model, None, 0)
    values = (ctypes.c_float * len(numbers))(*map(float, numbers))
    dims = (ctypes.c_int64 * 1)(len(numbers))
    check(weft.weft_tensor_new(WEFT_FLOAT, dims, 1, values, ctypes.c_size_t(ctypes.sizeof(values)), ctypes.byref(x)))
    check(weft.weft_model_predict(model, None, (text * 1)(input_name), (pointer * 1)(x.value), 1, (text * 1)(output_name),
                                  ctypes.byref(y), 1))
    floats = ctypes.cast(weft.weft_tensor_data(y), ctypes.POINTER(ctypes.c_float))
    told = ' '.join('%.1f' % floats[i] for i in range(weft.weft_tensor_elements(y)))
    print('%s of %s: %s' % (output_name.decode(), input_name.decode(), told))
    for tensor in x, y:
        weft.weft_tensor_free(tensor)
    weft.weft_model_free(model)


if __name__ == '__main__':
    main(*sys.argv[1:])
