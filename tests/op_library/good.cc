// SPDX-License-Identifier: Apache-2.0
// An op library without fault.
#include "twice.h"

static void RegisterTwice(weft::Catalogue& catalogue) {
  weft::OpSpec spec = Twice("Twice");
  catalogue.Add(std::move(spec.Kernel(weft::MakeKernel<TwiceKernel>())));
}
WEFT_OP_LIBRARY(RegisterTwice)
