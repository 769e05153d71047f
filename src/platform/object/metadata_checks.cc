// SPDX-License-Identifier: Apache-2.0
#include "platform/object/metadata_checks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kMostAnnotationBytes = 256 << 10;

void CheckAnnotations(const Json& annotations, const std::string& path, Problems* problems) {
  size_t bytes = 0;
  for (const JsonMember& member : annotations.members()) {
    for (const std::string& problem : QualifiedNameProblems(absl::AsciiStrToLower(member.name))) {
      problems->Invalid(member.value, path, member.name, problem);
    }
    bytes += member.name.size() + member.value.AsString().value_or("").size();
  }
  if (bytes > kMostAnnotationBytes) problems->TooLong(annotations, path, kMostAnnotationBytes);
}

void CheckOwners(const Json& owners, const std::string& path, Problems* problems) {
  std::string controller;
  for (const Json& owner : owners.items()) {
    // The server gives the place of the list, not of the item.
    const std::string version = StringField(owner, {"apiVersion"});
    if (version.empty() || version.back() == '/') {
      problems->Invalid(owner, absl::StrCat(path, ".apiVersion"), version,
                        "version must not be empty");
    }
    for (const char* field : {"kind", "name", "uid"}) {
      if (!StringField(owner, {field}).empty()) continue;
      problems->Invalid(owner, absl::StrCat(path, ".", field), "",
                        absl::StrCat(field, " must not be empty"));
    }
    if (!BoolField(owner, {"controller"})) continue;
    const std::string name =
        absl::StrCat(StringField(owner, {"kind"}), "/", StringField(owner, {"name"}));
    if (!controller.empty()) {
      problems->Invalid(owner, path, name,
                        absl::StrCat("Only one reference can have Controller set to true. Found "
                                     "\"true\" in references for ",
                                     controller, " and ", name));
    }
    controller = name;
  }
}

}  // namespace

void CheckName(const Json& at, const std::string& path, absl::string_view name,
               NameProblems (*check)(absl::string_view), Problems* problems) {
  for (const std::string& problem : check(name)) problems->Invalid(at, path, name, problem);
}

void CheckWord(const Json& object, const std::string& path, const char* field,
               const std::vector<std::string>& allowed, Problems* problems) {
  const std::string held = StringField(object, {field});
  if (held.empty() || std::find(allowed.begin(), allowed.end(), held) != allowed.end()) return;
  problems->Unsupported(object, absl::StrCat(path, ".", field), held, allowed);
}

void CheckLabels(const Json& labels, const std::string& path, Problems* problems) {
  for (const JsonMember& member : labels.members()) {
    CheckName(member.value, path, member.name, QualifiedNameProblems, problems);
    CheckName(member.value, path, member.value.AsString().value_or(""), LabelValueProblems,
              problems);
  }
}

void CheckMetadata(const Json& metadata, const std::string& path, Problems* problems) {
  if (const Json* const labels = FindField(metadata, {"labels"}))
    CheckLabels(*labels, absl::StrCat(path, ".labels"), problems);
  if (const Json* const annotations = FindField(metadata, {"annotations"}))
    CheckAnnotations(*annotations, absl::StrCat(path, ".annotations"), problems);
  if (const Json* const owners = FindField(metadata, {"ownerReferences"}))
    CheckOwners(*owners, absl::StrCat(path, ".ownerReferences"), problems);
  const Json* const finalizers = FindField(metadata, {"finalizers"});
  if (finalizers == nullptr) return;
  for (const Json& finalizer : finalizers->items()) {
    CheckName(finalizer, absl::StrCat(path, ".finalizers"), finalizer.AsString().value_or(""),
              QualifiedNameProblems, problems);
  }
}

void CheckLabelSelector(const Json& selector, const std::string& path, Problems* problems) {
  if (const Json* const labels = FindField(selector, {"matchLabels"}))
    CheckLabels(*labels, absl::StrCat(path, ".matchLabels"), problems);
  const Json* const expressions = FindField(selector, {"matchExpressions"});
  if (expressions == nullptr) return;
  size_t index = 0;
  for (const Json& one : expressions->items()) {
    const std::string at = absl::StrCat(path, ".matchExpressions[", index++, "]");
    const std::string verb = StringField(one, {"operator"});
    const Json* const values = FindField(one, {"values"});
    const size_t count = values == nullptr ? 0 : values->size();
    if (verb == "In" || verb == "NotIn") {
      if (count == 0) {
        problems->Required(one, absl::StrCat(at, ".values"),
                           "must be specified when `operator` is 'In' or 'NotIn'");
      }
    } else if (verb == "Exists" || verb == "DoesNotExist") {
      if (count > 0) {
        problems->Forbidden(one, absl::StrCat(at, ".values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      }
    } else {
      problems->Invalid(one, absl::StrCat(at, ".operator"), verb, "not a valid selector operator");
    }
    CheckName(one, absl::StrCat(at, ".key"), StringField(one, {"key"}), QualifiedNameProblems,
              problems);
    for (size_t i = 0; i < count; ++i) {
      CheckName(one, absl::StrCat(at, ".values[", i, "]"),
                values->items()[i].AsString().value_or(""), LabelValueProblems, problems);
    }
  }
}

}  // namespace weft::platform
