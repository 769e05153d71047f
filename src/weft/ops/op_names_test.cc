// SPDX-License-Identifier: Apache-2.0
// Names of ops in the sources: each is the name of an op that there is, for nobody tells otherwise
// when one is misspelt or was renamed; and the compiler and the executor decide nothing by name.
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "weft/ops/catalogue.h"

namespace weft {
namespace {

// Where a literal stands for an op: compared with one, made into a node, looked up.
const std::regex& OpInLiteral() {
  static const auto* const pattern = new std::regex(
      R"re((?:\bop\(\) [!=]= |\bop [!=]= |\.op = |HasKernel\(|FindTile\(|FindOp\(|AddNode\(|\bOp\(|\bAdd\()"(\w+)")re");
  return *pattern;
}

// The same in passes: the ops of the nodes that they make, and of the kernels that they need.
const std::regex& OpThatIsMade() {
  static const auto* const pattern = new std::regex(
      R"re((?:\.op = |HasKernel\(|AddNode\(|\bOp\(|\bAdd\()"(\w+)"|\.op = \w+ \? "(\w+)" : "(\w+)")re");
  return *pattern;
}
const std::regex& AnyLiteral() {
  static const auto* const pattern = new std::regex(R"re("(_?[A-Z]\w*)")re");
  return *pattern;
}

const std::regex& ComparedLiteral() {
  static const auto* const pattern =
      new std::regex(R"re([!=]= "(_?[A-Z]\w*)"|"(_?[A-Z]\w*)" [!=]=)re");
  return *pattern;
}

bool IsSource(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (absl::EndsWith(name, "_test.cc") || absl::EndsWith(name, "_fuzz.cc")) return false;
  return path.extension() == ".cc" || path.extension() == ".h";
}

// Calls `found` with each source below `folder` of src/weft, and what `pattern` finds in it.
void ForEachMatch(const std::string& folder, const std::regex& pattern,
                  const std::function<void(const std::string& file, const std::smatch&)>& found) {
  const std::filesystem::path root =
      std::filesystem::path(WEFT_SOURCE_ROOT) / "src" / "weft" / folder;
  ASSERT_TRUE(std::filesystem::is_directory(root)) << root;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
    if (entry.path().parent_path().filename() == "testing") continue;  // ops of tests
    std::ifstream file(entry.path());
    std::string source, line;
    while (std::getline(file, line)) {
      const size_t begin = line.find_first_not_of(' ');
      const bool is_comment = begin != std::string::npos && line.compare(begin, 2, "//") == 0;
      if (!is_comment) absl::StrAppend(&source, line, "\n");
    }
    for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at) {
      found(entry.path().string(), *at);
    }
  }
}

bool IsOp(const std::string& name) { return StandardCatalogue().ops().Find(name) != nullptr; }

TEST(OpNamesTest, EveryOpThatASourceNamesExists) {
  int seen = 0;
  ForEachMatch("", OpInLiteral(), [&](const std::string& file, const std::smatch& match) {
    ++seen;
    EXPECT_TRUE(IsOp(match[1])) << file << " names the op \"" << match[1]
                                << "\", which the catalogue does not have";
  });
  EXPECT_GT(seen, 200);  // else the pattern has lost touch with the sources
}

// Traits (graph/op_traits.h) are what passes ask for. They name the ops that they make.
TEST(OpNamesTest, NoOpIsToldByItsNameWhereGraphsAreCompiledAndRun) {
  // What leads to other tasks is read before any node is made of it.
  const std::set<std::string> stay = {"RemoteCall", "Const"};
  std::set<std::string> stayed;
  for (const char* room : {"compile", "executor", "step", "session"}) {
    std::set<std::pair<std::string, std::ptrdiff_t>> made;  // file and position
    ForEachMatch(room, OpThatIsMade(), [&](const std::string& file, const std::smatch& match) {
      for (const size_t group : {1, 2, 3}) {
        if (match[group].matched) made.insert({file, match.position(group)});
      }
    });
    ForEachMatch(room, AnyLiteral(), [&](const std::string& file, const std::smatch& match) {
      if (made.contains({file, match.position(1)}) || !IsOp(match[1])) return;
      if (absl::EndsWith(file, "/remote_calls.cc") && stay.contains(match[1])) {
        stayed.insert(match[1]);
        return;
      }
      ADD_FAILURE() << file << " asks for the op \"" << match[1]
                    << "\" by its name: let the op's file state a trait and ask for that";
    });
  }
  EXPECT_EQ(stayed, stay);
  for (const char* room : {"graph", "train"}) {
    ForEachMatch(room, ComparedLiteral(), [&](const std::string& file, const std::smatch& match) {
      EXPECT_FALSE(IsOp(match.str(1) + match.str(2))) << file << ": " << match[0];
    });
  }
}

TEST(OpNamesTest, FormsForReferencesExist) {
  int seen = 0;
  for (const OpDefinition* op : StandardCatalogue().ops().All()) {
    const std::string& form = op->schema.traits.reference_form;
    if (form.empty()) continue;
    ++seen;
    const OpDefinition* other = StandardCatalogue().ops().Find(form);
    ASSERT_NE(other, nullptr) << form;
    EXPECT_EQ(other->schema.traits.lowers_to, op->schema.traits.lowers_to) << form;
    EXPECT_TRUE(other->schema.traits.passes_reference) << form;
  }
  EXPECT_EQ(seen, 2);
}

// What a kernel is given as a handle it may write; what it says it writes must be one.
TEST(OpNamesTest, WhatChangesAVariableTakesOne) {
  int seen = 0;
  for (const OpDefinition* op : StandardCatalogue().ops().All()) {
    const OpSchema& schema = op->schema;
    const bool updates = absl::StartsWith(schema.name, "ResourceApply") ||
                         absl::StartsWith(schema.name, "ResourceSparseApply") ||
                         absl::StartsWith(schema.name, "ResourceScatter");
    EXPECT_TRUE(!updates || schema.traits.changes_variable) << schema.name;
    if (!schema.traits.changes_variable) continue;
    ++seen;
    ASSERT_FALSE(schema.inputs.empty()) << schema.name;
    EXPECT_EQ(schema.inputs[0].dtype, DType::kResource) << schema.name;
  }
  EXPECT_GT(seen, 40);
}

}  // namespace
}  // namespace weft
