// SPDX-License-Identifier: Apache-2.0
// oneDNN, loaded when it is first needed, so that programs that do not compute start fast.
#pragma once

#include <cstdint>

namespace weft {

// dnnl_sgemm: row-major, transposed where the letter is 'T'. Null if the library is missing.
using DnnlSgemm = int (*)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k,
                          float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                          float beta, float* c, int64_t ldc);

// Thread-safe. Also keeps oneDNN's own threads away from the calling thread: we share out work.
DnnlSgemm LoadDnnlSgemm();

}  // namespace weft
