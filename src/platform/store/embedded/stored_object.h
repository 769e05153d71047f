// SPDX-License-Identifier: Apache-2.0
// An object as the table holds it: its tree while it is new or in use, its text else, a tenth of
// the size or less.
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"

#include "platform/store/object_store.h"
#include "platform/store/packed_texts.h"

namespace weft::platform {

// Not thread-safe.
class StoredObject {
 public:
  explicit StoredObject(ObjectPtr tree) : tree_(std::move(tree)) {}

  // Of one that is packed the tree is made anew, each time.
  ObjectPtr Read() const;
  bool is_packed() const { return tree_ == nullptr; }
  // `texts` are those of its type; it must outlive this.
  void Pack(PackedTexts* texts);
  void Unpack();

  // Another one has taken its place, or it was removed: only the past still knows it.
  bool is_past = false;
  // Of an event: when it was told last, once somebody has found that out.
  absl::Time told = absl::InfinitePast();

 private:
  ObjectPtr tree_;
  std::string packed_;
  const PackedTexts* texts_ = nullptr;
};

}  // namespace weft::platform
