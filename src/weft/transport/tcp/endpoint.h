// SPDX-License-Identifier: Apache-2.0
// A task's place on a TCP network: one listening socket, one IO thread on epoll, any number of
// peers.
#pragma once

#include <memory>

#include "weft/transport/carrier.h"
#include "weft/transport/endpoint.h"

namespace weft::transport::tcp {

// `handler` outlives the endpoint. InvalidArgument for bad options, ResourceExhausted without
// file descriptors.
StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler);

// One whose connections greet and end here, and whose frames `carrier` takes.
StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler,
                                                 std::unique_ptr<Carrier> carrier);

}  // namespace weft::transport::tcp
