// SPDX-License-Identifier: Apache-2.0
#include "base/huge_pages.h"

#include <fstream>

#include <sys/mman.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

// The choice that stands in such a file in brackets: "always [madvise] never".
std::string ChoiceIn(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    if (absl::StartsWith(word, "[") && absl::EndsWith(word, "]")) {
      return word.substr(1, word.size() - 2);
    }
  }
  return "";
}

constexpr char kFolder[] = "/sys/kernel/mm/transparent_hugepage";

}  // namespace

HugePages HugePagesHere(const std::string& folder) {
  const std::string own = ChoiceIn(absl::StrCat(folder, "/enabled"));
  const std::string shared = ChoiceIn(absl::StrCat(folder, "/shmem_enabled"));
  return {.for_own = own == "always" || own == "madvise",
          .for_shared = shared == "always" || shared == "within_size" || shared == "advise" ||
                        shared == "force"};
}

std::string Describe(const HugePages& pages) {
  const std::string change_own = absl::StrCat("echo madvise > ", kFolder, "/enabled");
  const std::string change_shared = absl::StrCat("echo advise > ", kFolder, "/shmem_enabled");
  if (pages.for_own && pages.for_shared) {
    return "Tensors of 2 MB and more get huge pages where the system has them";
  }
  if (pages.for_own) {
    return absl::StrCat(
        "Tensors of 2 MB and more get huge pages where the system has them, but for those that "
        "tasks "
        "of one host lend each other (",
        change_shared, " gives them to these too)");
  }
  if (pages.for_shared) {
    return absl::StrCat(
        "Of tensors only those that tasks of one host lend each other get huge pages (", change_own,
        " gives them to others too)");
  }
  return absl::StrCat("No tensor gets huge pages: this system gives none (", change_own, "; ",
                      change_shared, ")");
}

void AskForHugePages(void* data, uint64_t bytes) {
  if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
}

}  // namespace weft
