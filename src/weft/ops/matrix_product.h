// SPDX-License-Identifier: Apache-2.0
// What kernels share that multiply two matrices, alone or as a part of what the compiler made.
#pragma once

#include "weft/device/cpu/gemm.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops {

// InvalidArgument, in TensorFlow's words, unless a b is defined.
inline Status CheckProduct(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  if (a.rank() != b.rank()) {
    return InvalidArgument("In[0] and In[1] has different ndims: ", a.shape().ToString(), " vs. ",
                           b.shape().ToString());
  }
  if (a.rank() != 2) {
    return InvalidArgument("In[0] is not a matrix. Instead it has shape ", a.shape().ToString());
  }
  if (a.dim(transpose_a ? 0 : 1) == b.dim(transpose_b ? 1 : 0)) return absl::OkStatus();
  return InvalidArgument("Matrix size-incompatible: In[0]: ", a.shape().ToString(),
                         ", In[1]: ", b.shape().ToString());
}

// The product of matrices that were checked, without a place for its result.
template <typename T>
MatrixProduct<T> ProductOf(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const int64_t n = b.dim(transpose_b ? 0 : 1);
  return {.transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .m = a.dim(transpose_a ? 1 : 0),
          .n = n,
          .k = a.dim(transpose_a ? 0 : 1),
          .a = a.data<T>(),
          .a_stride = a.dim(1),
          .b = b.data<T>(),
          .b_stride = b.dim(1),
          .c_stride = n};
}

}  // namespace weft::ops
