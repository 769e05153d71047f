// SPDX-License-Identifier: Apache-2.0
// Commands that know more ops than weft's own.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "weft/kernel/op_spec.h"

namespace weft::apps {

// --op_library; `paths` outlives the parsing.
void AddOpLibraryFlag(CLI::App* command, std::vector<std::string>* paths);

// weft's ops and those of the libraries, for as long as the process runs; more may be added. To be
// called before other threads run.
StatusOr<Catalogue*> OwnCatalogue(const std::vector<std::string>& paths);
// The same, or the one that all share where there is no library.
StatusOr<const Catalogue*> CatalogueWith(const std::vector<std::string>& paths);

}  // namespace weft::apps
