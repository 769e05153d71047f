// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/resource.h"

#include <cstdlib>
#include <vector>

#include <cxxabi.h>

namespace weft {
namespace {
std::string Readable(const char* kind) {
  int status = 0;
  char* text = abi::__cxa_demangle(kind, nullptr, nullptr, &status);
  std::string out = status == 0 ? text : kind;
  std::free(text);
  return out;
}
}  // namespace

StatusOr<Ref<Resource>> ResourceManager::LookupAny(const char* kind, const std::string& container,
                                                   const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = resources_.find({container, kind, name});
  if (found != resources_.end()) return found->second;
  return NotFound("Resource ", container, "/", name, " (", Readable(kind), ") does not exist.");
}

StatusOr<Ref<Resource>> ResourceManager::LookupOrCreateAny(
    const char* kind, const std::string& container, const std::string& name,
    absl::FunctionRef<StatusOr<Ref<Resource>>()> make) {
  absl::MutexLock lock(&mutex_);
  const Key key = {container, kind, name};
  const auto found = resources_.find(key);
  if (found != resources_.end()) return found->second;
  WEFT_ASSIGN_OR_RETURN(Ref<Resource> made, make());
  resources_.emplace(key, made);
  return made;
}

Status ResourceManager::RemoveAny(const char* kind, const std::string& container,
                                  const std::string& name) {
  Ref<Resource> removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = resources_.find({container, kind, name});
    if (found == resources_.end()) {
      return NotFound("Resource ", container, "/", name, " (", Readable(kind), ") does not exist.");
    }
    removed = std::move(found->second);
    resources_.erase(found);
    generation_.fetch_add(1, std::memory_order_release);
  }
  removed->Close();
  return absl::OkStatus();
}

Status ResourceManager::RemoveByName(const std::string& container, const std::string& name) {
  std::vector<Ref<Resource>> removed;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = resources_.begin(); it != resources_.end();) {
      if (std::get<0>(it->first) == container && std::get<2>(it->first) == name) {
        removed.push_back(std::move(it->second));
        it = resources_.erase(it);
      } else {
        ++it;
      }
    }
    generation_.fetch_add(1, std::memory_order_release);
  }
  for (const Ref<Resource>& resource : removed) resource->Close();
  if (removed.empty()) return NotFound("Resource ", container, "/", name, " does not exist.");
  return absl::OkStatus();
}

void ResourceManager::Cleanup(const std::string& container) {
  std::vector<Ref<Resource>> removed;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = resources_.begin(); it != resources_.end();) {
      if (std::get<0>(it->first) == container) {
        removed.push_back(std::move(it->second));
        it = resources_.erase(it);
      } else {
        ++it;
      }
    }
    generation_.fetch_add(1, std::memory_order_release);
  }
  for (const Ref<Resource>& resource : removed) resource->Close();
}

void ResourceManager::CleanupAll() {
  std::map<Key, Ref<Resource>> removed;
  {
    absl::MutexLock lock(&mutex_);
    removed.swap(resources_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  for (const auto& [key, resource] : removed) resource->Close();
}

void ResourceManager::Visit(
    absl::FunctionRef<void(const std::string&, const std::string&, const Resource&)> visit) {
  std::vector<std::pair<Key, Ref<Resource>>> all;
  {
    absl::MutexLock lock(&mutex_);
    all.assign(resources_.begin(), resources_.end());
  }
  for (const auto& [key, resource] : all) visit(std::get<0>(key), std::get<2>(key), *resource);
}

}  // namespace weft
