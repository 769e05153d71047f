// SPDX-License-Identifier: Apache-2.0
// Host tool of the build: api_generator OUTPUT_HEADER OUTPUT_SOURCE OUTPUT_REFERENCE
#include <fstream>
#include <iostream>

#include "weft/api/generator.h"
#include "weft/ops/catalogue.h"

namespace {
bool Write(const char* path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.good();
}
}  // namespace

int main(int argc, char** argv) {
  const weft::Catalogue& catalogue = weft::StandardCatalogue();
  if (!catalogue.status().ok()) {
    std::cerr << "api_generator: " << catalogue.status() << "\n";
    return 1;
  }
  if (argc != 4) {
    std::cerr << "usage: api_generator HEADER SOURCE REFERENCE\n";
    return 2;
  }
  const weft::api::Constructors code = weft::api::GenerateConstructors(catalogue);
  const bool ok = Write(argv[1], code.header) && Write(argv[2], code.source) &&
                  Write(argv[3], weft::api::GenerateReference(catalogue));
  if (!ok) std::cerr << "api_generator: cannot write its files\n";
  return ok ? 0 : 1;
}
