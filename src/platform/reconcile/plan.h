// SPDX-License-Identifier: Apache-2.0
// What a controller has to do for one object: the answer of its pure part.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct PlannedEvent {
  std::string type;  // "Normal", "Warning"
  std::string reason;
  std::string message;
};

// Carried out in this order: the status where it comes first, deletions, changes, creations, the
// status.
struct Plan {
  struct Removal {
    const ResourceType* type = nullptr;
    ObjectPtr object;
  };
  struct Change {
    const ResourceType* type = nullptr;
    Json object;
    std::string subresource;
    bool is_quiet = false;  // no event tells of it
  };

  // Those of one type stand together; a type waits until all of the one before could be deleted.
  std::vector<Removal> removals;
  // Writes of what is there; none of them is told as an event.
  std::vector<Change> changes;
  // Made before those where they are not there yet; they belong to nobody and outlive the object.
  std::vector<Change> companions;
  // Those of one type stand together and are created together.
  std::vector<Change> creations;

  // Asked of the store when the plan is carried out, since the copies that it follows from may be
  // old. Null: nothing to ask. False leaves the object; an error ends the plan.
  std::function<StatusOr<bool>(const Removal& removal)> may_remove;
  std::function<Status(const ResourceType& type)> before_creating;
  // Told how the creations went, none of them included, before the status is written, into which it
  // may write. Null: the status does not depend on it.
  std::function<void(const Status& created, Json* status)> after_creating;

  Json status;                // as it shall be; null: it stays
  bool status_first = false;  // it holds what must not be lost when the rest is done
  bool deletes_object = false;
  std::vector<PlannedEvent> events;
  absl::Duration look_again = absl::InfiniteDuration();
};

}  // namespace weft::platform
