// SPDX-License-Identifier: Apache-2.0
#include "platform/object/own_address.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

uint64_t Hash(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash ^ (hash >> 32);
}

bool Asks(const Json& object) {
  return StringField(object, {"metadata", "annotations", kOwnAddressAnnotation}) == "true";
}

// Pods from 127.128.0.0 on, services in 127.64.0.0/10; neither ends with .0 or .255.
std::string Address(uint64_t hash, uint64_t first, uint64_t count) {
  return absl::StrCat("127.", first + hash % count, ".", (hash >> 16) % 256, ".",
                      1 + (hash >> 24) % 254);
}

}  // namespace

std::string OwnAddressOfPod(const Json& pod) {
  if (!Asks(pod) || UidOf(pod).empty()) return "";
  return Address(Hash(UidOf(pod)), 128, 127);
}

std::string OwnAddressOfService(const Json& service) {
  if (!Asks(service)) return "";
  return Address(Hash(absl::StrCat(NamespaceOf(service), "/", NameOf(service))), 64, 64);
}

}  // namespace weft::platform
