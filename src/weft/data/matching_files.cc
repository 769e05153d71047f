// SPDX-License-Identifier: Apache-2.0
// The names of the files that match patterns.
#include "weft/data/matching_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "re2/re2.h"
#include "weft/data/held_dataset.h"

namespace weft::data {
namespace {

bool IsPattern(absl::string_view part) {
  return part.find_first_of("*?[") != absl::string_view::npos;
}

// One part of a path as a regular expression: * and ? stop at '/', [..] are sets.
std::string ExpressionOf(absl::string_view part) {
  std::string expression;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '*') {
      expression += "[^/]*";
    } else if (part[i] == '?') {
      expression += "[^/]";
    } else if (const size_t end = part.find(']', i + 2);
               part[i] == '[' && end != absl::string_view::npos) {
      std::string set(part.substr(i + 1, end - i - 1));
      if (set[0] == '!') set[0] = '^';
      absl::StrAppend(&expression, "[", set, "]");
      i = end;
    } else {
      expression += RE2::QuoteMeta(re2::StringPiece(&part[i], 1));
    }
  }
  return expression;
}

}  // namespace

Status MatchFiles(FileSystem& files, const std::string& pattern, std::set<std::string>* names) {
  std::vector<std::string> found = {absl::StartsWith(pattern, "/") ? "/" : ""};
  bool is_certain = true;  // that what was found is there
  for (const absl::string_view part : absl::StrSplit(pattern, '/', absl::SkipEmpty())) {
    std::vector<std::string> next;
    for (const std::string& folder : found) {
      const auto in_folder = [&folder](absl::string_view name) {
        return folder.empty() ? std::string(name) : JoinPath(folder, name);
      };
      // Folders above the root that files are kept under cannot be looked at, only what is in it.
      if (!IsPattern(part)) {
        next.push_back(in_folder(part));
        continue;
      }
      const RE2 expression(ExpressionOf(part), RE2::Quiet);
      if (!expression.ok()) return InvalidArgument("Pattern '", pattern, "' is malformed");
      const auto list = files.List(folder.empty() ? "." : folder);
      if (!list.ok()) continue;
      for (const std::string& name : *list) {
        if (RE2::FullMatch(name, expression)) next.push_back(in_folder(name));
      }
    }
    is_certain = IsPattern(part);
    found = std::move(next);
  }
  for (const std::string& name : found) {
    if (is_certain || files.Stat(name).ok()) names->insert(name);
  }
  return absl::OkStatus();
}

namespace matching_files {
namespace {

class Matching final : public Dataset {
 public:
  explicit Matching(std::vector<std::string> patterns)
      : Dataset({{DType::kString}, {PartialShape(Shape())}}), patterns_(std::move(patterns)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context->files());
    std::set<std::string> names;
    for (const std::string& pattern : patterns_) {
      WEFT_RETURN_IF_ERROR(MatchFiles(*files, pattern, &names));
    }
    std::vector<Element> elements;
    for (const std::string& name : names) elements.push_back({Tensor::Scalar(name)});
    return MakeRef<HeldDataset>(spec(), std::move(elements))->MakeIterator(context);
  }

 private:
  const std::vector<std::string> patterns_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(std::vector<std::string> patterns, VectorInput<std::string>(c, "patterns"));
  return DatasetRef(MakeRef<Matching>(std::move(patterns)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "MatchingFilesDataset",
              .doc = "A dataset of the names of files that match one of `patterns`, in order.",
              .inputs = {"patterns: string"},
              .is_stateful = true,
              .make = Make});
  AddDataset(catalogue, {.name = "ExperimentalMatchingFilesDataset",
                         .doc = "MatchingFilesDataset under its first name.",
                         .inputs = {"patterns: string"},
                         .is_stateful = true,
                         .make = Make});
}

}  // namespace matching_files
}  // namespace weft::data
