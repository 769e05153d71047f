// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/membership_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "net/json.h"

namespace weft::worker {
namespace {

StatusOr<std::string> ViewJson(MembershipLink& members, collective::Engine& engine,
                               const std::string& key) {
  Json view = Json::MakeObject();
  if (!key.empty()) {
    int32_t number = 0;
    if (!absl::SimpleAtoi(key, &number)) return InvalidArgument("Not the key of a group: ", key);
    const collective::Engine::View group = engine.ViewOf(number);
    view.Set("epoch", absl::StrCat(group.epoch));
    view.Set("changed", group.changed);
    Json devices = Json::MakeArray();
    for (const std::string& device : group.devices) devices.Append(device);
    view.Set("devices", std::move(devices));
  }
  Json all = Json::MakeArray();
  for (const membership::Member& member : members.Members()) {
    Json one = Json::MakeObject();
    one.Set("task", member.name);
    one.Set("address", member.address);
    one.Set("state", std::string(membership::StateName(member.state)));
    one.Set("is_rank", member.is_rank);
    all.Append(std::move(one));
  }
  view.Set("members", std::move(all));
  return view.Dump();
}

}  // namespace

void AddMembershipMethods(MembershipLink* members, collective::Engine* engine,
                          wire::MethodTable* methods) {
  methods->emplace("/weft.Membership/View",
                   wire::Method{[members, engine](std::unique_ptr<wire::ServerCall> call) {
                     std::string key;
                     for (absl::string_view part : call->request()) absl::StrAppend(&key, part);
                     StatusOr<std::string> view = ViewJson(*members, *engine, key);
                     call->Reply(view.status(),
                                 view.ok() ? wire::Payload(*std::move(view)) : wire::Payload());
                   }});
}

}  // namespace weft::worker
