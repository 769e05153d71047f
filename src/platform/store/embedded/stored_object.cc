// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/stored_object.h"

namespace weft::platform {

ObjectPtr StoredObject::Read() const {
  return tree_ != nullptr ? tree_ : texts_->UnpackJson(packed_);
}

void StoredObject::Pack(PackedTexts* texts) {
  if (is_packed()) return;
  packed_ = texts->Pack(tree_->Dump());
  texts_ = texts;
  tree_ = nullptr;
}

void StoredObject::Unpack() {
  if (!is_packed()) return;
  tree_ = Read();
  packed_ = std::string();
}

}  // namespace weft::platform
