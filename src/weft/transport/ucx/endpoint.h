// SPDX-License-Identifier: Apache-2.0
// A task's place on a network that UCX drives: InfiniBand and RoCE by RDMA, else shared memory or
// TCP, as UCX finds and UCX_TLS allows. Connections greet and end over TCP (tcp/), frames go
// through UCX.
#pragma once

#include <memory>

#include "weft/transport/endpoint.h"

namespace weft::transport::ucx {

// `handler` outlives the endpoint. Unimplemented: this build knows no UCX; Unavailable: the machine
// has no libucp; FailedPrecondition: with TLS, which UCX does not have; ResourceExhausted.
StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler);

// OK where MakeEndpoint would find UCX.
Status IsThere();

}  // namespace weft::transport::ucx
