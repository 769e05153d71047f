// SPDX-License-Identifier: Apache-2.0
#include "weft/data/csv_reader.h"

namespace weft::data {

StatusOr<int> CsvReader::Peek() {
  if (at_ == size_) {
    at_ = 0;
    WEFT_ASSIGN_OR_RETURN(size_, source_->Read(absl::MakeSpan(buffer_)));
    if (size_ == 0) return kEnd;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

StatusOr<bool> CsvReader::Next(std::vector<std::string>* fields) {
  fields->clear();
  WEFT_ASSIGN_OR_RETURN(const int first, Peek());
  if (first == kEnd) return false;
  Status wrong;
  bool is_last = false;
  while (!is_last) {
    WEFT_RETURN_IF_ERROR(ReadField(&fields->emplace_back(), &is_last, &wrong));
  }
  WEFT_RETURN_IF_ERROR(wrong);
  return true;
}

Status CsvReader::ReadField(std::string* field, bool* is_last, Status* wrong) {
  WEFT_ASSIGN_OR_RETURN(const int first, Peek());
  if (form_.quotes && first == '"') {
    Take();
    return ReadQuoted(field, is_last, wrong);
  }
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const int c, Peek());
    WEFT_ASSIGN_OR_RETURN(const bool ends, EndsField(c, is_last));
    if (ends) return absl::OkStatus();
    if (form_.quotes && c == '"') {
      wrong->Update(InvalidArgument("Unquoted fields cannot have quotes inside"));
    }
    field->push_back(static_cast<char>(c));
    Take();
  }
}

// Two quotes in a row stand for one; line ends may stand inside.
Status CsvReader::ReadQuoted(std::string* field, bool* is_last, Status* wrong) {
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const int c, Peek());
    if (c == kEnd) {
      *is_last = true;
      wrong->Update(InvalidArgument("Reached end of file without closing quoted field in record"));
      return absl::OkStatus();
    }
    Take();
    if (c != '"') {
      field->push_back(static_cast<char>(c));
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const int next, Peek());
    WEFT_ASSIGN_OR_RETURN(const bool ends, EndsField(next, is_last));
    if (ends) return absl::OkStatus();
    if (next != '"') {
      wrong->Update(InvalidArgument("Quote inside a string has to be escaped by another quote"));
    }
    field->push_back(static_cast<char>(next));
    Take();
  }
}

// Takes a delimiter or the end of a line.
StatusOr<bool> CsvReader::EndsField(int c, bool* is_last) {
  // As an unsigned byte: no delimiter is the end of the file.
  if (c == static_cast<unsigned char>(form_.delimiter)) {
    Take();
    return true;
  }
  *is_last = c == kEnd || c == '\n' || c == '\r';
  if (c == '\n' || c == '\r') Take();
  if (c == '\r') {
    WEFT_ASSIGN_OR_RETURN(const int next, Peek());
    if (next == '\n') Take();
  }
  return *is_last;
}

}  // namespace weft::data
