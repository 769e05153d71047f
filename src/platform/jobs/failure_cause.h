// SPDX-License-Identifier: Apache-2.0
// Why a pod failed, in words that stay when the pod has gone.
#pragma once

#include <string>
#include <vector>

#include "net/json.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// "Pod digits-worker-1 exited with code 137 (OOMKilled)", "Pod digits-ps-0: Evicted, The node was
// low on resource: memory."
std::string DescribeFailure(const Json& pod);
// Of those that failed among them, the first few; ends with a dot. Empty when none did.
std::string DescribeFailures(const std::vector<ObjectPtr>& pods);
// Somebody else wanted the pod away: its node, or pods that go before it.
bool WasEvicted(const Json& pod);
// What of a failed pod's status the above reads.
Json KeptOfFailure(const Json& pod);

}  // namespace weft::platform
