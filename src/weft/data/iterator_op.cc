// SPDX-License-Identifier: Apache-2.0
#include "weft/data/iterator_op.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace weft::data {

namespace {

struct PrivateIterators {
  absl::Mutex mutex;
  std::map<std::string, Ref<IteratorResource>> by_name ABSL_GUARDED_BY(mutex);
};

PrivateIterators& AllPrivate() {
  static auto* const all = new PrivateIterators();
  return *all;
}

}  // namespace

void RememberPrivateIterator(const std::string& name, Ref<IteratorResource> iterator) {
  absl::MutexLock lock(&AllPrivate().mutex);
  AllPrivate().by_name[name] = std::move(iterator);
}

void ForgetPrivateIterator(const std::string& name) {
  Ref<IteratorResource> last;  // goes without the lock
  absl::MutexLock lock(&AllPrivate().mutex);
  const auto found = AllPrivate().by_name.find(name);
  if (found == AllPrivate().by_name.end()) return;
  last = found->second;
  AllPrivate().by_name.erase(found);
}

StatusOr<Ref<IteratorResource>> FindIterator(const KernelContext& c, const ResourceHandle& handle) {
  if (auto* found = dynamic_cast<IteratorResource*>(handle.object.get())) {
    return Ref<IteratorResource>(found);
  }
  {
    absl::MutexLock lock(&AllPrivate().mutex);
    const auto found = AllPrivate().by_name.find(handle.name);
    if (found != AllPrivate().by_name.end()) return found->second;
  }
  return c.resources().Lookup<IteratorResource>(handle.container, handle.name);
}

StatusOr<Ref<IteratorResource>> IteratorOf(const KernelContext& c, int input) {
  WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(input));
  return FindIterator(c, *handle);
}

StatusOr<ElementSpec> SpecOfAttrs(const KernelConstruction& k) {
  ElementSpec spec;
  spec.types = k.AttrOr<AttrValue::TypeList>("output_types", {});
  spec.shapes = k.AttrOr<AttrValue::ShapeList>("output_shapes", {});
  return spec;
}

}  // namespace weft::data
