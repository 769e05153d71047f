// SPDX-License-Identifier: Apache-2.0
// The ends of a partial run: feeds that come, and fetches that go, while the step runs.
#pragma once

#include <string>

#include "base/status.h"
#include "weft/compile/prune.h"
#include "weft/graph/graph.h"
#include "weft/kernel/rendezvous.h"

namespace weft::step {

// Where in the rendezvous of the step's client device a feed is awaited, and a fetch left.
RendezvousKey PartialFeedKey(const std::string& client_device, const std::string& name);
RendezvousKey PartialFetchKey(const std::string& client_device, const std::string& name);

// Puts receives where the arguments of the step's graph are and sends where its results are.
Status OpenCallEnds(const compile::Signature& signature, const std::string& client_device,
                    Graph* step);

}  // namespace weft::step
