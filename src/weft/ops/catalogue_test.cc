// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/catalogue.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(CatalogueTest, EveryOpFileRegistersWithoutError) {
  EXPECT_TRUE(StandardCatalogue().status().ok()) << StandardCatalogue().status();
  EXPECT_GT(StandardCatalogue().ops().All().size(), 0u);
}

TEST(CatalogueTest, EveryOpSaysWhatItComputesAndWhetherItHasAGradient) {
  for (const OpDefinition* op : StandardCatalogue().ops().All()) {
    EXPECT_FALSE(op->documentation.empty()) << op->schema.name;
    EXPECT_TRUE(op->shape != nullptr) << op->schema.name << " has no shape function";
  }
}

}  // namespace
}  // namespace weft
