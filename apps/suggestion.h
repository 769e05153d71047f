// SPDX-License-Identifier: Apache-2.0
// `weft suggestion`, and Katib's calls beside a control plane.
#pragma once

#include <memory>
#include <string>

#include "apps/command.h"
#include "platform/store/object_store.h"
#include "platform/tuning/katib_server.h"

namespace weft::apps {

void AddSuggestion(CLI::App& app, Action* action);

// Suggestions and the database of trials' metrics; null for an empty address.
StatusOr<std::unique_ptr<platform::KatibServer>> StartKatibServer(const std::string& address,
                                                                  platform::ObjectStore* store);
void AddKatibFlag(CLI::App* command, std::string* address);

}  // namespace weft::apps
