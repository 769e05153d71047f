// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

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

// What a secret of a known type has to hold.
void CheckOfType(const Json& secret, Problems* problems) {
  const std::string type = StringField(secret, {"type"});
  const auto has = [&](const char* key) { return FindField(secret, {"data", key}) != nullptr; };
  const auto need = [&](const char* key) {
    if (!has(key)) problems->Required(secret, absl::StrCat("data[", key, "]"));
  };
  if (type == "kubernetes.io/tls") {
    need("tls.crt");
    need("tls.key");
  } else if (type == "kubernetes.io/ssh-auth") {
    need("ssh-privatekey");
  } else if (type == "kubernetes.io/basic-auth" && !has("username") && !has("password")) {
    need("username");
    need("password");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    need(".dockerconfigjson");
  } else if (type == "kubernetes.io/service-account-token" &&
             StringField(secret, {"metadata", "annotations", "kubernetes.io/service-account.name"})
                 .empty()) {
    problems->Required(secret, "metadata.annotations[kubernetes.io/service-account.name]");
  }
}

void CheckSecret(const Json* old, const Json& secret, Problems* problems) {
  CheckData(old, secret, "data", problems);
  CheckOfType(secret, problems);
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
