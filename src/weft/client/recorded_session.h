// SPDX-License-Identifier: Apache-2.0
// A session whose steps' costs are written to a file.
#pragma once

#include <memory>
#include <string>

#include "weft/session/session.h"

namespace weft::client {

// All goes on to `session`, some of whose steps are traced for it (inspect/cost_recorder.h). The
// file is complete when the session is gone.
std::unique_ptr<session::Session> NewRecordedSession(std::unique_ptr<session::Session> session,
                                                     std::string cost_file);

}  // namespace weft::client
