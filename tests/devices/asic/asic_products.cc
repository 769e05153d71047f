// SPDX-License-Identifier: Apache-2.0
// Products of matrices.
#include "tests/devices/asic/asic.h"

namespace asic {
namespace {

int MakeMatMul(const weft_op& op, Launch* launch, weft_error*) {
  int ta = 0;
  int tb = 0;
  op.get_bool(op.attributes, "transpose_a", &ta);
  op.get_bool(op.attributes, "transpose_b", &tb);
  *launch = [=, dtype = op.input_dtypes[0]](weft_stream* stream, const weft_call& call,
                                            weft_error* error) {
    const Dims a = DimsOf(call.inputs[0]);
    const Dims b = DimsOf(call.inputs[1]);
    if (a.size() != 2) return Fail(error, WEFT_INVALID_ARGUMENT, "In[0] is not a matrix");
    if (b.size() != 2) return Fail(error, WEFT_INVALID_ARGUMENT, "In[1] is not a matrix");
    const int64_t rows = a[ta ? 1 : 0];
    const int64_t depth = a[ta ? 0 : 1];
    const int64_t columns = b[tb ? 0 : 1];
    if (depth != b[tb ? 1 : 0]) {
      return Fail(error, WEFT_INVALID_ARGUMENT,
                  "Matrix size-incompatible: In[0]: " + Text(a) + ", In[1]: " + Text(b));
    }
    const weft_tensor* const y = Output(call, 0, -1, {rows, columns});
    if (y == nullptr) return WEFT_OUT_OF_MEMORY;
    const Memory* const memory = &stream->device->memory;
    stream->Ask([=, p = call.inputs[0].address, q = call.inputs[1].address, to = y->address] {
      ForReal(dtype, [&]<typename T>(T) {
        const T* const x = memory->At<T>(p);
        const T* const w = memory->At<T>(q);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < depth; ++k) {
              sum += static_cast<double>(x[ta ? k * rows + i : i * depth + k]) *
                     static_cast<double>(w[tb ? j * depth + k : k * columns + j]);
            }
            memory->At<T>(to)[i * columns + j] = static_cast<T>(sum);
          }
        }
      });
    });
    return WEFT_OK;
  };
  return WEFT_OK;
}

}  // namespace

void AddProducts(std::vector<Kernel>* kernels) {
  kernels->push_back({"MatMul", {{"T", {kFloat, kDouble}}}, MakeMatMul});
}

}  // namespace asic
