// SPDX-License-Identifier: Apache-2.0
// Files of separated values, cut into records.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/storage/byte_stream.h"

namespace weft::data {

// How the fields of a record are told apart.
struct CsvForm {
  char delimiter = ',';
  bool quotes = true;  // fields may stand in quotes, with delimiters and line ends inside
};

// Cuts one file into records. Not thread-safe.
class CsvReader {
 public:
  CsvReader(const CsvForm& form, std::unique_ptr<storage::ByteSource> source)
      : form_(form), source_(std::move(source)), buffer_(256 << 10) {}

  // The fields of the next record; false at the end of the file. InvalidArgument for a record whose
  // quotes make no sense: all of it was taken then, and the next call gives the record behind it.
  StatusOr<bool> Next(std::vector<std::string>* fields);

 private:
  static constexpr int kEnd = -1;
  // The next character without taking it; kEnd behind the last.
  StatusOr<int> Peek();
  void Take() { ++at_; }
  Status ReadField(std::string* field, bool* is_last, Status* wrong);
  Status ReadQuoted(std::string* field, bool* is_last, Status* wrong);
  StatusOr<bool> EndsField(int c, bool* is_last);

  const CsvForm form_;
  const std::unique_ptr<storage::ByteSource> source_;
  std::vector<char> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
};

}  // namespace weft::data
