// SPDX-License-Identifier: Apache-2.0
// A session at a master of this process.
#pragma once

#include <memory>

#include "weft/client/session_options.h"
#include "weft/master/local_masters.h"
#include "weft/session/session.h"

namespace weft::client {

// Tensors pass without copies.
std::unique_ptr<session::Session> NewLocalSession(std::shared_ptr<master::LocalMaster> master,
                                                  const SessionOptions& options);

}  // namespace weft::client
