// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/catalogue.h"

namespace weft {

const Catalogue& StandardCatalogue() {
  static const Catalogue* const catalogue = [] {
    auto* filled = new Catalogue();
    RegisterOps(*filled);
    return filled;
  }();
  return *catalogue;
}

}  // namespace weft
