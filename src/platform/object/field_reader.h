// SPDX-License-Identifier: Apache-2.0
// Strict reading of objects: a field that is not known or holds the wrong kind is a problem with
// its place.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

struct FieldProblem {
  std::string path;  // "spec.replicas"
  std::string what;  // "holds "two", a whole number is allowed"
  bool is_unknown_field = false;
  // As an API server calls it.
  std::string reason = "FieldValueInvalid";
};

// All that is wrong with one file, in the order found. Not thread-safe.
class Problems {
 public:
  // `file` is empty for an object that is in none: then lines mean nothing.
  explicit Problems(std::string file) : file_(std::move(file)) {}
  // "job.yaml:12:5: spec.replicas: holds "two", a whole number is allowed"
  void Add(const Json& at, absl::string_view path, absl::string_view what,
           bool is_unknown_field = false);
  // In the words of an API server, with its reasons. `at` says where in the file.
  void Required(const Json& at, absl::string_view path, absl::string_view detail = "");
  void Invalid(const Json& at, absl::string_view path, const Json& value, absl::string_view detail);
  // Of a value that a server shows in its own way.
  void InvalidAs(const Json& at, absl::string_view path, absl::string_view shown,
                 absl::string_view detail);
  void Unsupported(const Json& at, absl::string_view path, const Json& value,
                   const std::vector<std::string>& supported);
  void Duplicate(const Json& at, absl::string_view path, const Json& value);
  void Forbidden(const Json& at, absl::string_view path, absl::string_view detail);
  void Missing(const Json& at, absl::string_view path, const Json& value);
  // Of the last one that was told.
  void SetReason(absl::string_view reason);
  void TooLong(const Json& at, absl::string_view path, int64_t most_bytes);
  bool empty() const { return problems_.empty(); }
  const std::vector<FieldProblem>& fields() const { return fields_; }
  // OK, or InvalidArgument with one problem a line.
  Status ToStatus() const;

 private:
  void AddFor(const Json& at, absl::string_view path, absl::string_view reason, std::string what,
              absl::string_view detail);

  const std::string file_;
  std::vector<std::string> problems_;
  std::vector<FieldProblem> fields_;
};

// Reads the fields of one mapping. A field that is missing or null leaves its target as it is. The
// destructor does nothing: call Finish to have unknown fields reported. Borrows all its arguments.
class FieldReader {
 public:
  // A value that is no mapping is a problem, and then has no fields.
  FieldReader(const Json& value, std::string path, Problems* problems);

  const std::string& path() const { return path_; }
  std::string PathOf(absl::string_view name) const;

  // Null when missing or null. Any Find or Read makes the name known.
  const Json* Find(absl::string_view name);
  void ReadString(absl::string_view name, std::string* out);
  void ReadBool(absl::string_view name, bool* out);
  void ReadInt(absl::string_view name, int64_t min, int64_t max, int64_t* out);
  void ReadStrings(absl::string_view name, std::vector<std::string>* out);
  // A mapping of strings to strings.
  void ReadStringMap(absl::string_view name, std::vector<std::pair<std::string, std::string>>* out);
  // One of `allowed`, as its index.
  void ReadChoice(absl::string_view name, const std::vector<std::string>& allowed, int* out);
  // The items of a list; a mapping in its place gets a hint how to write it.
  const Json::Array& ReadList(absl::string_view name);
  // "spec.x: missing, ..." unless the field is there.
  bool Require(absl::string_view name, absl::string_view what);

  // Fields that are right but not read.
  void Accept(const std::vector<std::string>& names);
  // Reports the fields that were not named by then.
  void Finish();

 private:
  void Expected(absl::string_view name, const Json& value, absl::string_view allowed);

  const Json& value_;
  const std::string path_;
  Problems* const problems_;
  std::vector<std::string> known_;  // some maybe twice
};

// "holds "two", a whole number is allowed"
std::string HoldsButAllowed(const Json& value, absl::string_view allowed);
// How a list would look, with the fields of the mapping that stands in its place.
std::string ListHint(absl::string_view name, const Json& mapping);

}  // namespace weft::platform
