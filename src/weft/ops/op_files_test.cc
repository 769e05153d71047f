// SPDX-License-Identifier: Apache-2.0
// Op files read in one order: what they are, kernels, shape functions, gradients, and at the end
// `Register`, where each op says its documentation, its signature, its traits and what goes with
// it.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

struct OpFile {
  std::string path;
  std::string text;
};

std::vector<OpFile> OpFiles() {
  const std::filesystem::path root =
      std::filesystem::path(WEFT_SOURCE_ROOT) / "src" / "weft" / "ops";
  std::vector<OpFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".cc" || absl::EndsWith(name, "_test.cc")) continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    if (!absl::StrContains(text.str(), "\nvoid Register(Catalogue&")) continue;
    files.push_back({entry.path().string(), text.str()});
  }
  return files;
}

TEST(OpFilesTest, KernelsShapesAndGradientsComeInThisOrder) {
  const std::vector<std::pair<std::string, std::regex>> parts = {
      {"kernel", std::regex(R"(\nclass \w+ (?:final )?: public (?:Async)?OpKernel)")},
      {"shape function", std::regex(R"(\nStatus \w+\(ShapeContext& c\) \{)")},
      {"gradient", std::regex(R"(\nStatus \w+\(GradientContext& c\) \{)")},
      {"Register", std::regex(R"(\nvoid Register\(Catalogue&)")}};
  const std::vector<OpFile> files = OpFiles();
  EXPECT_GT(files.size(), 100u);  // else the pattern has lost touch with the sources
  for (const OpFile& file : files) {
    std::ptrdiff_t end = 0;  // of the parts before
    std::string before = "the head";
    for (const auto& [part, pattern] : parts) {
      std::ptrdiff_t last = 0;
      for (std::sregex_iterator at(file.text.begin(), file.text.end(), pattern), none; at != none;
           ++at) {
        EXPECT_GT(at->position(), end)
            << file.path << " has a " << part << " above a " << before << ": " << at->str();
        last = at->position();
      }
      if (last == 0) continue;
      end = std::max(end, last);
      before = part;
    }
  }
}

TEST(OpFilesTest, AnOpSaysWhatItIsBeforeWhatGoesWithIt) {
  const std::map<std::string, int> ranks = {{"Doc", 0},      {"Input", 1},      {"Output", 1},
                                            {"Attr", 1},     {"Traits", 2},     {"Shape", 3},
                                            {"Gradient", 4}, {"NoGradient", 4}, {"Kernel", 5}};
  const std::regex chain(R"(OpSpec\("\w+"\)[^;]*;)");
  const std::regex call(R"(\.(Doc|Input|Output|Attr|Traits|Shape|Gradient|NoGradient|Kernel)\()");
  int seen = 0;
  for (const OpFile& file : OpFiles()) {
    for (std::sregex_iterator at(file.text.begin(), file.text.end(), chain), none; at != none;
         ++at) {
      const std::string op = at->str();
      std::vector<std::string> order;
      int rank = 0;
      for (std::sregex_iterator c(op.begin(), op.end(), call); c != none; ++c) {
        order.push_back((*c)[1]);
        const int next = ranks.at(order.back());
        EXPECT_GE(next, rank) << file.path << ": " << op.substr(0, op.find('\n')) << ": "
                              << absl::StrJoin(order, ", ");
        rank = next;
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 150);
}

}  // namespace
}  // namespace weft
