// SPDX-License-Identifier: Apache-2.0
// What kernels that compute together with their like on other devices and tasks ask for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/waits.h"
#include "weft/kernel/device.h"
#include "weft/tensor/tensor.h"

namespace weft {

enum class CollectiveKind : uint8_t {
  kReduce,         // every rank gets the reduction of all inputs
  kReduceScatter,  // rank r gets part r, along dimension 0, of that
  kGather,         // every rank gets all inputs, one after the other along dimension 0
  kBroadcast,      // every rank gets the one input
  kAllToAll,       // row s of rank r's result is row r of rank s's input
  kBarrier,        // no rank goes on before all have come
};

enum class ReductionOp : uint8_t { kSum, kProduct, kMin, kMax };

// The size of a group whose ranks come and go. Calls of this size are of the group as it was formed
// last, and fail with Aborted where it is over; a call with the size -n leaves it and forms it
// again of all who are there, n at least.
inline constexpr int32_t kOpenGroup = 0;

// One rank's part of one collective. Groups and instances are told apart by their keys, as in
// TensorFlow: all ranks of a group give the same key and size, and the n-th step in which a rank
// comes to an instance meets the n-th step of every other rank.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kReduce;
  ReductionOp reduction = ReductionOp::kSum;
  bool mean = false;  // divide by the number of ranks at the end
  int32_t group_key = 0;
  int32_t group_size = 0;
  int32_t instance_key = 0;
  // All ranks are devices of this task: nobody else is asked who they are.
  bool is_local = false;
  int32_t rank = -1;   // as the user numbers them; -1: by the devices' names
  std::string device;  // the rank's, in full
  std::string node;    // for errors and waits
  std::string algorithm = "auto";
  const void* session = nullptr;  // whose step it is: only compared
  int64_t step_id = 0;
  uint64_t frame = 0;
  int64_t iteration = 0;
  Tensor input;  // not initialized: receives a broadcast of this type and shape
  DType dtype = DType::kInvalid;
  Shape shape;
  absl::Duration timeout = absl::InfiniteDuration();  // DeadlineExceeded that says who is missing
  Cancellation* cancellation = nullptr;               // may be null; else outlives the call
  WaitRegistry* waits = nullptr;                      // may be null
};

// Thread-safe.
class CollectiveRunner {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<Tensor>)>;
  virtual ~CollectiveRunner() = default;
  // Calls `done` once, maybe before it returns: with the rank's result (an empty tensor of a
  // barrier), or with why no rank gets one. InvalidArgument: ranks disagree, both named.
  // Unavailable: a rank's task was lost, named. Aborted: a rank's step ended.
  virtual void Run(CollectiveCall call, Done done) = 0;
};

// Kernels find it among the resources of their device, in a container that no client can name.
// `runner` must outlive the device's last step.
void OfferCollectives(Device* device, CollectiveRunner* runner);
// Null where the device's ranks have nobody to meet.
CollectiveRunner* CollectivesOf(Device* device);

}  // namespace weft
