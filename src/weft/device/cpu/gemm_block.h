// SPDX-License-Identifier: Apache-2.0
// The vector code under gemm.cc.
#pragma once

#include "weft/device/cpu/gemm.h"

namespace weft {

// Each computes a whole product on the calling thread.
struct BlockProducts {
  void (*of_float)(const MatrixProduct<float>& product);
  void (*of_double)(const MatrixProduct<double>& product);
};

// For the best instruction set of this machine.
const BlockProducts& GetBlockProducts();

}  // namespace weft
