// SPDX-License-Identifier: Apache-2.0
// Brings an op that weft has.
#include "twice.h"

static void RegisterMatMul(weft::Catalogue& catalogue) {
  weft::OpSpec spec = Twice("MatMul");
  catalogue.Add(std::move(spec.Kernel(weft::MakeKernel<TwiceKernel>())));
}
WEFT_OP_LIBRARY(RegisterMatMul)
