// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::controllerrevisions {
namespace {

Json ControllerCell(const Json& revision, absl::Time /*now*/) {
  const Json* const owner = ControllerOf(revision);
  if (owner == nullptr) return "<none>";
  return absl::StrCat(StringField(*owner, {"kind"}), "/", StringField(*owner, {"name"}));
}

}  // namespace

KindSpec Spec() {
  return KindSpec("apps", "v1", "controllerrevisions", "ControllerRevision")
      .Column("Controller", &ControllerCell)
      .Count("Revision", ".revision")
      .Age();
}

}  // namespace weft::platform::kinds::controllerrevisions
