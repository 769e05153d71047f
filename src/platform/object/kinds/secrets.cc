// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/escaping.h"

#include "platform/object/columns.h"
#include "platform/object/data_checks.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::secrets {
namespace {

// Plain texts of a secret become its data.
void DefaultSecret(const Json* /*old*/, const std::string& /*version*/, Json* secret) {
  SetDefault(secret, {"type"}, "Opaque");
  const Json* const plain = secret->Find("stringData");
  if (plain == nullptr) return;
  const Json added = *plain;
  for (const JsonMember& member : added.members()) {
    std::string encoded;
    absl::Base64Escape(member.value.AsString().value_or(""), &encoded);
    SetField(secret, {"data", member.name}, encoded);
  }
  secret->Erase("stringData");
}

void CheckSecret(const Json* old, const Json& secret, Problems* problems) {
  CheckData(old, secret, "data", problems);
  if (old != nullptr && StringField(*old, {"type"}) != StringField(secret, {"type"}))
    problems->Invalid(secret, "type", StringField(secret, {"type"}), "field is immutable");
}

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "secrets", "Secret")
      .SelectableBy({"type"})
      .Defaults(&DefaultSecret)
      .Check(&CheckSecret)
      .Column("Type", ".type")
      .Column({"Data", "integer", "", "Data", 0, &DataCountCell})
      .Age();
}

}  // namespace weft::platform::kinds::secrets
