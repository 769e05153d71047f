// SPDX-License-Identifier: Apache-2.0
#include "apps/op_libraries.h"

#include "weft/kernel/op_library.h"
#include "weft/ops/catalogue.h"

namespace weft::apps {

void AddOpLibraryFlag(CLI::App* command, std::vector<std::string>* paths) {
  command
      ->add_option("--op_library", *paths,
                   "Shared library with further ops (docs/op_library.md); may be given again (or "
                   "WEFT_OP_LIBRARY: several with ':' between)")
      ->envname("WEFT_OP_LIBRARY")
      ->delimiter(':')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

StatusOr<Catalogue*> OwnCatalogue(const std::vector<std::string>& paths) {
  static Catalogue* const catalogue = [] {
    auto* filled = new Catalogue();
    RegisterOps(*filled);
    return filled;
  }();
  WEFT_RETURN_IF_ERROR(catalogue->status());
  for (const std::string& path : paths) {
    WEFT_RETURN_IF_ERROR(LoadOpLibrary(path, catalogue).status());
  }
  return catalogue;
}

StatusOr<const Catalogue*> CatalogueWith(const std::vector<std::string>& paths) {
  if (!paths.empty()) return OwnCatalogue(paths);
  WEFT_RETURN_IF_ERROR(StandardCatalogue().status());
  return &StandardCatalogue();
}

}  // namespace weft::apps
