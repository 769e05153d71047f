// SPDX-License-Identifier: Apache-2.0
// Of builds that found no UCX.
#include "weft/transport/ucx/endpoint.h"

namespace weft::transport::ucx {

Status IsThere() {
  return Unimplemented(
      "UCX is not in this build: it was made on a machine without UCX's headers (libucx-dev)");
}

StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions&, FrameHandler*) {
  return IsThere();
}

}  // namespace weft::transport::ucx
