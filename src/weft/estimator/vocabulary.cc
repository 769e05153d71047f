// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/vocabulary.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "weft/storage/object_files.h"

namespace weft::estimator {
namespace {

constexpr uint64_t kMostBytes = uint64_t{2} << 30;

Tensor Numbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Tensor::FromSpan<int64_t>(Shape{count}, numbers);
}

// Fills a table with the other states of the program.
void Fill(train::Program& program, Node* initializer, const std::string& name) {
  if (initializer == nullptr) return;
  program.AddState({.name = absl::StrCat(name, "_table"),
                    .device = program.builder().device(),
                    .initializer = initializer});
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> words)
    : words_(Tensor::FromSpan<std::string>(Shape{static_cast<int64_t>(words.size())}, words)),
      size_(static_cast<int64_t>(words.size())) {}

Vocabulary::Vocabulary(std::vector<int64_t> numbers)
    : words_(Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(numbers.size())}, numbers)),
      size_(static_cast<int64_t>(numbers.size())),
      is_text_(false) {}

StatusOr<Vocabulary> Vocabulary::OfFile(const std::string& path, int64_t size) {
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostBytes));
  int64_t lines = std::count(text.begin(), text.end(), '\n');
  if (!text.empty() && text.back() != '\n') ++lines;
  if (size > lines || lines == 0) {
    return InvalidArgument("The vocabulary ", path, " has ", lines, " lines, expected ",
                           std::max<int64_t>(size, 1), " or more");
  }
  Vocabulary vocabulary;
  vocabulary.path_ = path;
  vocabulary.size_ = size > 0 ? size : lines;
  return vocabulary;
}

Endpoint Vocabulary::Table(train::Program& program, const std::string& name, DType keys,
                           DType values, const std::string& shared) const {
  return program.builder().Op("HashTableV2", {},
                              {{"container", ""},
                               {"shared_name", shared},
                               {"use_node_name_sharing", shared.empty()},
                               {"key_dtype", keys},
                               {"value_dtype", values}},
                              absl::StrCat(name, "_lookup"));
}

Endpoint Vocabulary::IdsOf(train::Program& program, Assets* assets, Endpoint words,
                           const std::string& name, int64_t otherwise) const {
  GraphBuilder& b = program.builder();
  const DType keys = is_text_ ? DType::kString : DType::kInt64;
  const Endpoint table = Table(program, name, keys, DType::kInt64, "");
  if (!b.ok()) return {};
  if (path_.empty()) {
    Fill(program,
         b.AddNode("InitializeTableV2", {table, b.Constant(words_), b.Constant(Numbers(size_))}),
         table.node->name());
  } else {
    const Endpoint path =
        b.Constant(Tensor::Scalar<std::string>(path_), absl::StrCat(name, "_file"));
    if (assets != nullptr) assets->emplace_back(path, path_);
    Fill(program,
         b.AddNode("InitializeTableFromTextFileV2", {table, path},
                   {{"key_index", -2}, {"value_index", -1}, {"vocab_size", size_}}),
         table.node->name());
  }
  const Endpoint found = b.Op("LookupTableFindV2", {table, words, b.Scalar<int64_t>(otherwise)});
  return b.Op("EnsureShape", {found}, {{"shape", b.ShapeOf(words)}});
}

Endpoint Vocabulary::WordsOf(train::Program& program, Endpoint ids, const std::string& name,
                             const Tensor& otherwise) const {
  GraphBuilder& b = program.builder();
  const Endpoint table = Table(program, name, DType::kInt64, words_.dtype(), "");
  if (!b.ok()) return {};
  Fill(program,
       b.AddNode("InitializeTableV2", {table, b.Constant(Numbers(size_)), b.Constant(words_)}),
       table.node->name());
  const Endpoint found = b.Op("LookupTableFindV2", {table, ids, b.Constant(otherwise)});
  return b.Op("EnsureShape", {found}, {{"shape", b.ShapeOf(ids)}});
}

}  // namespace weft::estimator
