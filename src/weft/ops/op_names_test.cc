// SPDX-License-Identifier: Apache-2.0
// Names of ops in the sources are names of ops that there are: nobody tells otherwise when one is
// misspelt or was renamed.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include "weft/ops/catalogue.h"

namespace weft {
namespace {

// Where a literal stands for an op: compared with one, made into a node, looked up.
const std::regex& OpInLiteral() {
  static const auto* const pattern = new std::regex(
      R"re((?:\bop\(\) [!=]= |\bop [!=]= |\.op = |HasKernel\(|FindTile\(|FindOp\(|AddNode\(|\bOp\(|IsOp\(\w+, |IsOp\(\*\w+(?:\.\w+)?, )"(\w+)")re");
  return *pattern;
}

bool IsSource(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (absl::EndsWith(name, "_test.cc") || absl::EndsWith(name, "_fuzz.cc")) return false;
  return path.extension() == ".cc" || path.extension() == ".h";
}

TEST(OpNamesTest, EveryOpThatASourceNamesExists) {
  const std::filesystem::path root = std::filesystem::path(WEFT_SOURCE_ROOT) / "src" / "weft";
  ASSERT_TRUE(std::filesystem::is_directory(root)) << root;
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
    if (entry.path().parent_path().filename() == "testing") continue;  // ops of tests
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator at(source.begin(), source.end(), OpInLiteral()), end; at != end;
         ++at) {
      ++seen;
      const std::string name = (*at)[1];
      EXPECT_TRUE(StandardCatalogue().ops().Find(name) != nullptr)
          << entry.path() << " names the op \"" << name << "\", which the catalogue does not have";
    }
  }
  EXPECT_GT(seen, 200);  // else the pattern has lost touch with the sources
}

}  // namespace
}  // namespace weft
