// SPDX-License-Identifier: Apache-2.0
#include "platform/object/claim_checks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

void CheckAccessModes(const Json& spec, const std::string& path, Problems* problems) {
  static const auto* const known = new std::vector<std::string>{
      "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
  const std::string at = absl::StrCat(path, ".accessModes");
  const Json* const modes = FindField(spec, {"accessModes"});
  if (modes == nullptr || modes->size() == 0)
    return problems->Required(spec, at, "at least 1 access mode is required");
  bool is_for_one_pod = false;
  for (const Json& mode : modes->items()) {
    const std::string word = mode.AsString().value_or("");
    is_for_one_pod = is_for_one_pod || word == "ReadWriteOncePod";
    if (std::find(known->begin(), known->end(), word) == known->end())
      problems->Unsupported(mode, at, word, *known);
  }
  if (is_for_one_pod && modes->size() > 1)
    problems->Forbidden(spec, at, "may not use ReadWriteOncePod with other access modes");
}

// Without what may change.
Json FixedPart(const Json& claim, bool is_bound) {
  const Json* const spec = FindField(claim, {"spec"});
  Json fixed = spec == nullptr ? Json::MakeObject() : *spec;
  fixed.Erase("volumeAttributesClassName");
  if (is_bound && FindField(fixed, {"resources"}) != nullptr)
    fixed.FindMutable("resources")->Erase("requests");
  return fixed;
}

}  // namespace

void CheckClaimSpec(const Json& spec, const std::string& path, Problems* problems) {
  CheckAccessModes(spec, path, problems);
  const std::string at = absl::StrCat(path, ".resources[storage]");
  const Json* const size = FindField(spec, {"resources", "requests", "storage"});
  if (size == nullptr) {
    problems->Required(spec, at);
  } else if (const StatusOr<Quantity> amount = Quantity::Parse(*size);
             amount.ok() && !(Quantity() < *amount)) {
    problems->Invalid(*size, at, amount->ToString(), "must be greater than zero");
  }
  const std::string storage_class = StringField(spec, {"storageClassName"});
  if (!storage_class.empty())
    CheckName(spec, absl::StrCat(path, ".storageClassName"), storage_class, SubdomainProblems,
              problems);
  CheckWord(spec, path, "volumeMode", {"Block", "Filesystem"}, problems);
}

void CheckClaimUpdate(const Json& old, const Json& claim, Problems* problems) {
  const bool is_bound = StringField(old, {"status", "phase"}) == "Bound";
  Json before = FixedPart(old, is_bound);
  Json now = FixedPart(claim, is_bound);
  // Whoever binds it says to what.
  if (StringField(before, {"volumeName"}).empty()) {
    before.Erase("volumeName");
    now.Erase("volumeName");
  }
  if (SameJson(before, now)) return;
  problems->Forbidden(claim, "spec",
                      "spec is immutable after creation except resources.requests and "
                      "volumeAttributesClassName for bound claims");
}

}  // namespace weft::platform
