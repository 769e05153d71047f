// SPDX-License-Identifier: Apache-2.0
// The store as a process reaches it: late, twice, in part, or not at all.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "platform/simulation/process.h"

namespace weft::platform::simulation {

// Events that are on their way. Its destructor ends the watch.
class NetworkWatch : public Watch {
 public:
  NetworkWatch(Process* process, WatchSink sink) : process_(process), sink_(std::move(sink)) {
    process_->watches_.push_back(this);
  }
  ~NetworkWatch() override;

  void Push(const WatchEvent& event) {
    if (!is_broken) queue.push_back(event);
  }
  void Tell(const WatchEvent& event) { sink_(event); }

  std::string what;  // type and selector
  std::unique_ptr<Watch> source;
  std::deque<WatchEvent> queue;
  absl::Duration stalled_until;
  bool is_broken = false;  // after its last event, an error
  bool is_listed = false;  // a list comes whole, whatever becomes of the events after it

 private:
  Process* const process_;
  const WatchSink sink_;
};

enum class CallFault {
  kNone,
  kRefused,
  kLostAnswer,
  kTouched,
  kKilledBefore,
  kKilledAfter,
  kOutlives
};

class NetworkStore : public ObjectStore {
 public:
  explicit NetworkStore(Process* process) : process_(process), world_(process->world_) {}

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override;
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override;

 private:
  struct Request {
    const ResourceType* type = nullptr;
    std::string verb;
    std::string name;
    absl::Duration deadline = absl::InfiniteDuration();  // on the process's clock
    bool is_write = false;
    std::function<StatusOr<ObjectPtr>()> land;  // at the server; once
  };
  StatusOr<ObjectPtr> Send(const Request& request);
  StatusOr<ObjectPtr> Land(const Request& request);
  StatusOr<ObjectPtr> Exchange(const Request& request, CallFault fault, absl::Duration end);
  void Outlive(const Request& request, absl::Duration end);
  CallFault DrawFault(const Request& request);
  void Touch(const std::string& job);
  Status StartStale(const ResourceType& type, const WatchOptions& options, NetworkWatch* watch);

  Process* const process_;
  World* const world_;
};

}  // namespace weft::platform::simulation
