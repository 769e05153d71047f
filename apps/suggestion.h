// SPDX-License-Identifier: Apache-2.0
// `weft suggestion`, and Katib's calls beside a control plane.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "platform/store/object_store.h"
#include "platform/tuning/katib_server.h"

namespace weft::apps {

void AddSuggestion(CLI::App& app, Action* action);

// How a control plane speaks with Katib's programs.
struct KatibFlags {
  std::string address;                // where it answers; empty: nowhere
  std::vector<std::string> services;  // whom it asks: "ALGORITHM=HOST:PORT"
};
void AddKatibFlags(CLI::App* command, KatibFlags* flags);

// Suggestions, early stopping and the database of trials' metrics; null without an address.
StatusOr<std::unique_ptr<platform::KatibServer>> StartKatibServer(const KatibFlags& flags,
                                                                  platform::ObjectStore* store);

}  // namespace weft::apps
