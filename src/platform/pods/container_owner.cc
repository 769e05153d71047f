// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_owner.h"

#include <array>

#include <pwd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

struct Account {
  bool is_known = false;
  gid_t group = 0;
  std::string name;
  std::string home = "/";
};

Account FindAccount(uid_t user) {
  Account account;
  passwd entry = {};
  passwd* found = nullptr;
  std::array<char, 16384> buffer;
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return account;
  account.is_known = true;
  account.group = found->pw_gid;
  account.name = found->pw_name;
  account.home = found->pw_dir;
  return account;
}

// The container's own, else the pod's.
const Json* Setting(const Json& pod, const Json& container, const char* name) {
  const Json* const own = FindField(container, {"securityContext", name});
  return own != nullptr ? own : FindField(pod, {"spec", "securityContext", name});
}

}  // namespace

StatusOr<std::optional<ProcessOwner>> OwnerOf(const Json& pod, const Json& container,
                                              std::string* told) {
  const std::optional<ProcessOwner> ours;
  const Json* const user = Setting(pod, container, "runAsUser");
  const Json* const group = Setting(pod, container, "runAsGroup");
  const Json* const not_root = Setting(pod, container, "runAsNonRoot");
  const uid_t self = ::geteuid();
  const auto wanted = user == nullptr ? self : static_cast<uid_t>(user->AsInt().value_or(self));
  const bool may_change = self == 0;
  if (not_root != nullptr && not_root->AsBool().value_or(false) &&
      (may_change ? wanted : self) == 0) {
    return FailedPrecondition(
        "runAsNonRoot holds true and it would run as root: write a runAsUser other than 0, or "
        "start "
        "weft as another user");
  }
  if (user == nullptr && group == nullptr) return ours;
  if (!may_change) {
    if (wanted != self) {
      *told = absl::StrCat("runAsUser asks for user ", wanted, ", it runs as user ", self,
                           ", who runs weft: only root becomes another");
    }
    return ours;
  }
  ProcessOwner owner;
  owner.user = wanted;
  owner.group =
      group == nullptr ? FindAccount(wanted).group : static_cast<gid_t>(group->AsInt().value_or(0));
  const Json* const more = FindField(pod, {"spec", "securityContext", "supplementalGroups"});
  if (more != nullptr && more->is_array()) {
    for (const Json& item : more->items())
      owner.groups.push_back(static_cast<gid_t>(item.AsInt().value_or(0)));
  }
  if (const Json* const shared = FindField(pod, {"spec", "securityContext", "fsGroup"}))
    owner.groups.push_back(static_cast<gid_t>(shared->AsInt().value_or(0)));
  return std::optional<ProcessOwner>(std::move(owner));
}

void SetOwnerEnvironment(const ProcessOwner& owner, std::vector<std::string>* environment) {
  const Account account = FindAccount(owner.user);
  SetEnvironment(environment, "HOME", account.home);
  const std::string name = account.is_known ? account.name : absl::StrCat(owner.user);
  SetEnvironment(environment, "USER", name);
  SetEnvironment(environment, "LOGNAME", name);
}

}  // namespace weft::platform
