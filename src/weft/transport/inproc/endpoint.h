// SPDX-License-Identifier: Apache-2.0
// Endpoints of one process, for tests and clusters in one program: the same calls as over a
// network, with regions handed over instead of copied. Addresses are names of this process.
#pragma once

#include <memory>

#include "weft/transport/endpoint.h"

namespace weft::transport::inproc {

// `handler` outlives the endpoint. InvalidArgument for bad options. Deadlines of silence and queues
// of the kernel have no meaning here; the other options hold.
StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler);

}  // namespace weft::transport::inproc
