// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/openapi_protobuf.h"

#include <cstdint>

#include "absl/strings/string_view.h"

#include "net/yaml.h"
#include "platform/apiserver/discovery.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

// Field numbers of openapi.v2, as its published OpenAPIv2.proto has them.
constexpr uint32_t kDocumentSwagger = 1;
constexpr uint32_t kDocumentInfo = 2;
constexpr uint32_t kDocumentPaths = 8;
constexpr uint32_t kDocumentDefinitions = 9;
constexpr uint32_t kInfoTitle = 1;
constexpr uint32_t kInfoVersion = 2;
constexpr uint32_t kDefinitionsSchema = 1;
constexpr uint32_t kNamedName = 1;
constexpr uint32_t kNamedValue = 2;
constexpr uint32_t kSchemaExtension = 31;
constexpr uint32_t kAnyYaml = 2;

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Texts and messages alike.
void AppendField(uint32_t number, absl::string_view content, std::string* out) {
  constexpr uint32_t kLengthDelimited = 2;
  AppendVarint(number << 3 | kLengthDelimited, out);
  AppendVarint(content.size(), out);
  out->append(content.data(), content.size());
}

std::string Named(absl::string_view name, absl::string_view value) {
  std::string message;
  AppendField(kNamedName, name, &message);
  AppendField(kNamedValue, value, &message);
  return message;
}

}  // namespace

std::string OpenApiV2InProtobuf() {
  constexpr char kKinds[] = "x-kubernetes-group-version-kind";
  std::string definitions;
  const Json document = OpenApiV2();
  for (const JsonMember& definition : document.Find("definitions")->members()) {
    std::string kinds;
    AppendField(kAnyYaml, DumpYaml(*definition.value.Find(kKinds)), &kinds);
    std::string schema;
    AppendField(kSchemaExtension, Named(kKinds, kinds), &schema);
    AppendField(kDefinitionsSchema, Named(definition.name, schema), &definitions);
  }
  std::string info;
  AppendField(kInfoTitle, StringField(document, {"info", "title"}), &info);
  AppendField(kInfoVersion, StringField(document, {"info", "version"}), &info);
  std::string message;
  AppendField(kDocumentSwagger, StringField(document, {"swagger"}), &message);
  AppendField(kDocumentInfo, info, &message);
  AppendField(kDocumentPaths, "", &message);
  AppendField(kDocumentDefinitions, definitions, &message);
  return message;
}

}  // namespace weft::platform
