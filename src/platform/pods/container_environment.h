// SPDX-License-Identifier: Apache-2.0
// What a container's program gets: its variables and its command line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mount_namespace.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "net/json.h"
#include "platform/pods/service_addresses.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct ContainerCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string working_directory;
  std::shared_ptr<const MountNamespace> mounts;  // null: it sees the files as we do
  std::optional<ProcessOwner> owner;             // none: ours
  std::string note;                 // what of its security was not to be had; empty: nothing
  std::string address;              // the pod's own, where probes go; empty: 127.0.0.1
  std::string message_file;         // what it leaves there tells why it ended; may be empty
  bool has_message_in_log = false;  // else the end of its log does, when it failed
  bool takes_input = false;         // from whoever attaches to it
  bool ends_input = false;          // with the first of them
  bool has_terminal = false;
};

// Of `container` of `pod`: the inherited variables, then envFrom and env with their sources (fields
// of the pod, config maps, secrets), $(NAME) expanded, names of services led to this machine.
// InvalidArgument when there is no command: there is no image here to say what to run. NotFound
// names what a variable comes from.
StatusOr<ContainerCommand> MakeContainerCommand(ObjectStore* store, const Json& pod,
                                                const Json& container,
                                                const std::vector<std::string>& inherited,
                                                ServiceAddresses* services);

}  // namespace weft::platform
