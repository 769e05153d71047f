// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

#include "platform/object/fields.h"
#include "platform/simulation/job_draw.h"
#include "platform/store/api_error.h"

namespace weft::platform::simulation {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(30);
constexpr absl::Duration kSlowCall = absl::Seconds(3);
constexpr absl::Duration kVerySlowCall = absl::Seconds(20);
constexpr absl::Duration kLongestAfterlife = absl::Seconds(20);
constexpr int64_t kOldestList = 12;

}  // namespace

NetworkWatch::~NetworkWatch() { std::erase(process_->watches_, this); }

StatusOr<ObjectPtr> NetworkStore::Get(const ResourceType& type, const ObjectName& name) {
  Request request{&type, "get", name.name};
  EmbeddedStore* const store = world_->cluster.store();
  request.land = [store, &type, name] { return store->Get(type, name); };
  return Send(request);
}

StatusOr<ObjectList> NetworkStore::List(const ResourceType& type, const ListOptions& options) {
  ObjectList list;
  Request request{&type, "list", ""};
  request.land = [&]() -> StatusOr<ObjectPtr> {
    WEFT_ASSIGN_OR_RETURN(list, world_->cluster.store()->List(type, options));
    return ObjectPtr();
  };
  WEFT_RETURN_IF_ERROR(Send(request).status());
  return list;
}

StatusOr<ObjectPtr> NetworkStore::Create(const ResourceType& type,
                                         const std::string& namespace_name, Json object,
                                         const WriteOptions& options) {
  Request request{&type, "create", NameOf(object), options.deadline, true};
  EmbeddedStore* const store = world_->cluster.store();
  // Nobody reads them here.
  if (type == Events()) {
    const auto kept = std::make_shared<const Json>(std::move(object));
    request.land = [kept] { return kept; };
    return Send(request);
  }
  request.land = [store, &type, namespace_name, object = std::move(object), options]() mutable {
    return store->Create(type, namespace_name, std::move(object), options);
  };
  return Send(request);
}

StatusOr<ObjectPtr> NetworkStore::Update(const ResourceType& type, Json object,
                                         const WriteOptions& options) {
  Request request{&type, "update", NameOf(object), options.deadline, true};
  EmbeddedStore* const store = world_->cluster.store();
  request.land = [store, &type, object = std::move(object), options]() mutable {
    return store->Update(type, std::move(object), options);
  };
  return Send(request);
}

StatusOr<ObjectPtr> NetworkStore::Patch(const ResourceType& type, const ObjectName& name,
                                        PatchKind kind, const Json& patch,
                                        const WriteOptions& options) {
  Request request{&type, "patch", name.name, options.deadline, true};
  EmbeddedStore* const store = world_->cluster.store();
  if (type == Events()) {
    const auto kept = std::make_shared<const Json>(patch);
    request.land = [kept] { return kept; };
    return Send(request);
  }
  request.land = [store, &type, name, kind, patch, options] {
    return store->Patch(type, name, kind, patch, options);
  };
  return Send(request);
}

StatusOr<ObjectPtr> NetworkStore::Delete(const ResourceType& type, const ObjectName& name,
                                         const DeleteOptions& options) {
  Request request{&type, "delete", name.name, options.deadline, true};
  EmbeddedStore* const store = world_->cluster.store();
  request.land = [store, &type, name, options] { return store->Delete(type, name, options); };
  return Send(request);
}

CallFault NetworkStore::DrawFault(const Request& request) {
  if (!world_->Fails(12)) return CallFault::kNone;
  // Watches and reads have no effect that could matter.
  static constexpr CallFault kOfReads[] = {CallFault::kRefused, CallFault::kLostAnswer,
                                           CallFault::kKilledBefore, CallFault::kKilledAfter};
  static constexpr CallFault kOfWrites[] = {CallFault::kRefused,      CallFault::kLostAnswer,
                                            CallFault::kLostAnswer,   CallFault::kTouched,
                                            CallFault::kKilledBefore, CallFault::kKilledAfter,
                                            CallFault::kOutlives};
  return request.is_write ? kOfWrites[world_->random.Below(std::size(kOfWrites))]
                          : kOfReads[world_->random.Below(std::size(kOfReads))];
}

// Another writer changes the job in between.
void NetworkStore::Touch(const std::string& job) {
  Json patch;
  SetField(&patch, {"metadata", "annotations", "touched"}, absl::StrCat(world_->steps));
  WriteOptions options;
  options.is_strict = false;
  world_->cluster.store()
      ->Patch(TypeOfJob(job, world_->cluster.setting()), {"default", job}, PatchKind::kMerge, patch,
              options)
      .status()
      .IgnoreError();
}

StatusOr<ObjectPtr> NetworkStore::Land(const Request& request) {
  const bool is_lease = request.type == &Leases();
  if (request.is_write && world_->elects && !is_lease) {
    const StatusOr<ObjectPtr> lease =
        world_->cluster.store()->Get(Leases(), {"weft-system", "weft-operator"});
    const std::string holder = lease.ok() ? StringField(**lease, {"spec", "holderIdentity"}) : "";
    if (holder != absl::StrCat("process-", process_->options_.id)) {
      world_->cluster.Complain(absl::StrCat("process-", process_->options_.id, " writes (",
                                            request.verb, " ", request.name, ") while ", holder,
                                            " leads"));
    }
  }
  StatusOr<ObjectPtr> result = request.land();
  if (request.is_write && result.ok() && !is_lease) ++world_->writes;
  world_->Note("process-", process_->options_.id, " ", request.verb, " ", request.type->plural, " ",
               request.name, " -> ", result.ok() ? "ok" : result.status().message());
  return result;
}

// The server goes on with what a dead process asked for: for as long as the request says, or the
// connection lasts. A process that is started again comes later than creations, which it therefore
// sees.
void NetworkStore::Outlive(const Request& request, absl::Duration end) {
  const bool is_creation = request.verb == "create";
  const absl::Duration now = world_->now();
  if (is_creation && !world_->elects) return;
  const absl::Duration longest =
      world_->elects ? std::min(end - now, kLongestAfterlife) : kLongestAfterlife;
  if (longest <= absl::ZeroDuration()) return;
  // By then the process is no more, so what its leadership was is noted here.
  const std::string who = absl::StrCat("process-", process_->options_.id);
  World* const world = world_;
  world_->late.emplace_back(now + world_->random.UpTo(longest), [world, who, request] {
    if (world->elects && request.type != &Leases()) {
      const StatusOr<ObjectPtr> lease =
          world->cluster.store()->Get(Leases(), {"weft-system", "weft-operator"});
      if (lease.ok() && StringField(**lease, {"spec", "holderIdentity"}) != who) {
        world->cluster.Complain(absl::StrCat(who, " writes after its end while another leads"));
      }
    }
    const Status status = request.land().status();
    world->Note(who, " (dead) ", request.verb, " ", request.type->plural, " ", request.name, " -> ",
                status.ok() ? "ok" : status.message());
  });
}

StatusOr<ObjectPtr> NetworkStore::Send(const Request& request) {
  if (process_->is_dead_) return Unavailable("the process is dead");
  ++world_->calls;
  const absl::Duration end =
      std::min(world_->now() + kCallTimeout, process_->clock_.ToBase(request.deadline));
  return Exchange(request, DrawFault(request), end);
}

StatusOr<ObjectPtr> NetworkStore::Exchange(const Request& request, CallFault fault,
                                           absl::Duration end) {
  const auto travel = [&] {
    absl::Duration length = absl::ZeroDuration();
    if (world_->random.OneIn(8)) {
      length = world_->random.UpTo(world_->random.OneIn(8) ? kVerySlowCall : kSlowCall);
    }
    process_->Pause(length);
  };
  const auto too_late = [&] { return world_->now() > end; };
  const auto fail = [&](const char* what) -> Status {
    world_->Note("process-", process_->options_.id, " ", request.verb, " ", request.type->plural,
                 " ", request.name, ": ", what);
    switch (world_->random.Below(3)) {
      case 0:
        return DeadlineExceeded(what);
      case 1:
        return ApiError(500, "InternalError", what);
      default:
        return Unavailable(what);
    }
  };
  if (fault != CallFault::kOutlives) travel();
  if (process_->is_dead_) return Unavailable("the process is dead");
  if (process_->cut_off_until_ > world_->now()) {
    process_->Pause(std::max(end - world_->now(), absl::ZeroDuration()));
    return fail("cut off");
  }
  if (too_late()) return fail("too late");
  if (fault == CallFault::kOutlives) Outlive(request, end);
  if (fault == CallFault::kKilledBefore || fault == CallFault::kOutlives) {
    world_->Note("process-", process_->options_.id, " is killed before ", request.verb, " ",
                 request.name);
    process_->is_dead_ = true;
    return Unavailable("the process is dead");
  }
  if (fault == CallFault::kRefused) return fail("refused");
  if (request.type == &Pods() && request.verb == "create" &&
      world_->pods_refused_until > world_->now()) {
    world_->Note("process-", process_->options_.id, " may not create pod ", request.name);
    return ApiError(403, "Forbidden", absl::StrCat("pod ", request.name, ": exceeded quota"));
  }
  if (fault == CallFault::kTouched) Touch(request.name.substr(0, request.name.find('-')));
  StatusOr<ObjectPtr> result = Land(request);
  if (fault == CallFault::kKilledAfter) {
    world_->Note("process-", process_->options_.id, " is killed after ", request.verb);
    process_->is_dead_ = true;
  }
  travel();
  if (process_->is_dead_) return Unavailable("the process is dead");
  if (fault == CallFault::kLostAnswer || too_late()) return fail("no answer");
  return result;
}

// A server that lags behind gives its copy.
Status NetworkStore::StartStale(const ResourceType& type, const WatchOptions& options,
                                NetworkWatch* watch) {
  ListOptions list_options;
  list_options.label_selector = options.label_selector;
  WEFT_ASSIGN_OR_RETURN(ObjectList list, world_->cluster.store()->List(type, list_options));
  int64_t revision = 0;
  if (!absl::SimpleAtoi(list.revision, &revision)) return Internal("a revision is no number");
  revision -= 1 + static_cast<int64_t>(world_->random.Below(kOldestList));
  if (revision < 3) return Unavailable("there is nothing that old");
  list_options.revision = absl::StrCat(revision);
  list_options.is_exact = true;
  WEFT_ASSIGN_OR_RETURN(list, world_->cluster.store()->List(type, list_options));
  for (const ObjectPtr& item : list.items) {
    watch->Push(WatchEvent{WatchEvent::Kind::kAdded, item, absl::OkStatus()});
  }
  Json mark;
  mark.Set("kind", type.kind);
  SetField(&mark, {"metadata", "resourceVersion"}, list_options.revision);
  watch->Push(WatchEvent{WatchEvent::Kind::kBookmark, std::make_shared<const Json>(std::move(mark)),
                         absl::OkStatus()});
  WatchOptions later = options;
  later.revision = list_options.revision;
  later.marks_initial_end = false;
  WEFT_ASSIGN_OR_RETURN(watch->source,
                        world_->cluster.store()->StartWatch(
                            type, later, [watch](const WatchEvent& event) { watch->Push(event); }));
  world_->Note("process-", process_->options_.id, " gets an old list of ", type.plural);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Watch>> NetworkStore::StartWatch(const ResourceType& type,
                                                          const WatchOptions& options,
                                                          WatchSink sink) {
  if (process_->is_dead_) return Unavailable("the process is dead");
  ++world_->calls;
  process_->Pause(world_->random.OneIn(4) ? world_->random.UpTo(kSlowCall) : absl::ZeroDuration());
  if (process_->is_dead_) return Unavailable("the process is dead");
  if (process_->cut_off_until_ > world_->now() || world_->Fails(12)) {
    return Unavailable("the watch is refused");
  }
  auto watch = std::make_unique<NetworkWatch>(process_, std::move(sink));
  watch->what = absl::StrCat(type.plural, options.label_selector);
  // Until a process has a list it asks for no revision, which is answered by what is written.
  const bool is_first = process_->listed_.count(watch->what) == 0;
  if (!is_first && world_->Fails(12) && StartStale(type, options, watch.get()).ok()) return watch;
  watch->queue.clear();
  NetworkWatch* const target = watch.get();
  WEFT_ASSIGN_OR_RETURN(watch->source, world_->cluster.store()->StartWatch(
                                           type, options, [target](const WatchEvent& event) {
                                             target->Push(event);
                                           }));
  return watch;
}

}  // namespace weft::platform::simulation
