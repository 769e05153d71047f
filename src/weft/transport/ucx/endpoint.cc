// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/ucx/endpoint.h"

#include <utility>

#include "weft/transport/tcp/endpoint.h"
#include "weft/transport/ucx/library.h"
#include "weft/transport/ucx/worker.h"

namespace weft::transport::ucx {

Status IsThere() { return LoadLibrary().status(); }

StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler) {
  if (options.tls.has_value()) {
    return FailedPrecondition("UCX has no TLS, and the tasks of this job demand it: take TCP");
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::Open());
  return tcp::MakeEndpoint(options, handler, std::move(worker));
}

}  // namespace weft::transport::ucx
