// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "weft/storage/hdf5.h"

namespace weft::storage {

Hdf5Group& Hdf5Group::Make(absl::string_view path) {
  Hdf5Group* at = this;
  for (const absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    std::unique_ptr<Hdf5Group>& child = at->groups[std::string(name)];
    if (child == nullptr) child = std::make_unique<Hdf5Group>();
    at = child.get();
  }
  return *at;
}

const Hdf5Group* Hdf5Group::Find(absl::string_view path) const {
  const Hdf5Group* at = this;
  for (const absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    const auto child = at->groups.find(std::string(name));
    if (child == at->groups.end()) return nullptr;
    at = child->second.get();
  }
  return at;
}

const Tensor* Hdf5Group::FindDataset(absl::string_view path) const {
  const size_t slash = path.rfind('/');
  const Hdf5Group* group = slash == path.npos ? this : Find(path.substr(0, slash));
  if (group == nullptr) return nullptr;
  const auto found =
      group->datasets.find(std::string(slash == path.npos ? path : path.substr(slash + 1)));
  return found == group->datasets.end() ? nullptr : &found->second;
}

const std::string* Hdf5Group::FindText(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
}

std::unique_ptr<std::vector<std::string>> Hdf5Group::FindTexts(const std::string& attribute) const {
  const auto list = [this](const std::string& name) -> const std::vector<std::string>* {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr
                                     : std::get_if<std::vector<std::string>>(&found->second);
  };
  if (const auto* whole = list(attribute))
    return std::make_unique<std::vector<std::string>>(*whole);
  std::unique_ptr<std::vector<std::string>> joined;
  for (int part = 0;; ++part) {
    const auto* more = list(absl::StrCat(attribute, part));
    if (more == nullptr) return joined;
    if (joined == nullptr) joined = std::make_unique<std::vector<std::string>>();
    joined->insert(joined->end(), more->begin(), more->end());
  }
}

}  // namespace weft::storage
