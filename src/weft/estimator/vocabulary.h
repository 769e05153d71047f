// SPDX-License-Identifier: Apache-2.0
// A list of words, or a file with one a line, as a table of a graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/train/program.h"

namespace weft::estimator {

// A vocabulary's file that a graph reads, and the tensor that holds its path.
using Assets = std::vector<std::pair<Endpoint, std::string>>;

// Immutable.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> words);
  explicit Vocabulary(std::vector<int64_t> numbers);
  // The first `size` lines of the file; 0: all, which are counted now. NotFound names the file,
  // InvalidArgument says that it has too few lines.
  static StatusOr<Vocabulary> OfFile(const std::string& path, int64_t size);

  int64_t size() const { return size_; }
  bool is_text() const { return is_text_; }
  // The place of each of `words` in the vocabulary, `otherwise` for those that it has not: int64.
  // The table is filled with the program's states; a file is noted in `assets`, which may be null.
  Endpoint IdsOf(train::Program& program, Assets* assets, Endpoint words, const std::string& name,
                 int64_t otherwise) const;
  // The word at each of `ids` (int64); `otherwise`, a word's scalar, where there is none. Of a list
  // only.
  Endpoint WordsOf(train::Program& program, Endpoint ids, const std::string& name,
                   const Tensor& otherwise) const;

 private:
  Vocabulary() = default;
  Endpoint Table(train::Program& program, const std::string& name, DType keys, DType values,
                 const std::string& shared) const;

  Tensor words_;  // empty: of a file
  std::string path_;
  int64_t size_ = 0;
  bool is_text_ = true;
};

}  // namespace weft::estimator
