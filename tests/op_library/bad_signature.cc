// SPDX-License-Identifier: Apache-2.0
// Its signature names an attribute that it does not have.
#include "twice.h"

static void RegisterBad(weft::Catalogue& catalogue) {
  weft::OpSpec spec("Bad");
  spec.Doc("Nothing.").Input("x: Missing").Kernel(weft::MakeKernel<TwiceKernel>());
  catalogue.Add(std::move(spec));
}
WEFT_OP_LIBRARY(RegisterBad)
