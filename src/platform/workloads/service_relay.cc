// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/service_relay.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/object/own_address.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kTakenRetry = absl::Seconds(5);

// Ready ones at that port of the service.
std::vector<SocketAddress> TargetsOf(const Json& endpoints, const std::string& port_name) {
  std::vector<SocketAddress> targets;
  for (const Json& subset : ListField(endpoints, {"subsets"})) {
    for (const Json& port : ListField(subset, {"ports"})) {
      if (StringField(port, {"name"}) != port_name) continue;
      for (const Json& address : ListField(subset, {"addresses"})) {
        targets.push_back(
            {StringField(address, {"ip"}), static_cast<int>(IntField(port, {"port"}))});
      }
    }
  }
  return targets;
}

}  // namespace

StatusOr<std::unique_ptr<ServiceRelay>> ServiceRelay::Create(ObjectStore* store,
                                                             const Clock* clock) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<TcpRelay> relay, TcpRelay::Start());
  return absl::WrapUnique(new ServiceRelay(store, clock, std::move(relay)));
}

ServiceRelay::ServiceRelay(ObjectStore* store, const Clock* clock, std::unique_ptr<TcpRelay> relay)
    : queue_(clock),
      services_(store, Services(), {}, clock),
      endpoints_(store, Endpoints(), {}, clock),
      relay_(std::move(relay)) {
  const auto look = [this](const ObjectPtr& previous, const ObjectPtr& object) {
    queue_.Add(KeyOfObject(object == nullptr ? *previous : *object));
  };
  services_.AddHandler(look);
  endpoints_.AddHandler(look);
}

ServiceRelay::~ServiceRelay() { loop_.reset(); }

void ServiceRelay::Start() {
  loop_ = std::make_unique<ControllerLoop>(
      "service-relay", &queue_, std::vector<Informer*>{&endpoints_, &services_},
      [this](const std::string& key) { return Look(key); }, 1);
}

StatusOr<absl::Duration> ServiceRelay::Look(const std::string& key) {
  const auto [space, name] = SplitKey(key);
  const ObjectPtr service = services_.Get(space, name);
  const ObjectPtr endpoints = endpoints_.Get(space, name);
  std::map<std::string, SocketAddress> wanted;
  absl::Duration again = absl::InfiniteDuration();
  const std::string own = service == nullptr ? "" : OwnAddressOfService(*service);
  // Somebody may have written another address: then this is not the one that is shown.
  if (!own.empty() && StringField(*service, {"spec", "clusterIP"}) == own) {
    for (const Json& port : ListField(*service, {"spec", "ports"})) {
      const SocketAddress at = {own, static_cast<int>(IntField(port, {"port"}))};
      std::vector<SocketAddress> targets;
      if (endpoints != nullptr) targets = TargetsOf(*endpoints, StringField(port, {"name"}));
      const Status led = relay_->Lead(at, std::move(targets));
      if (led.ok()) {
        wanted[at.ToString()] = at;
      } else {
        WEFT_LOG_EVERY(WARNING, absl::Minutes(1))
            << "The service " << key << " cannot have its address: " << led.message();
        again = kTakenRetry;
      }
    }
  }
  absl::MutexLock lock(&mutex_);
  std::map<std::string, SocketAddress>& held = entrances_[key];
  for (const auto& [text, at] : held) {
    if (!wanted.contains(text)) relay_->Drop(at);
  }
  held = std::move(wanted);
  if (held.empty()) entrances_.erase(key);
  return again;
}

}  // namespace weft::platform
