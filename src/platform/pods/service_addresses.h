// SPDX-License-Identifier: Apache-2.0
// Where the services of a cluster are when all of their pods are processes of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::platform {

// Each "<name>.<namespace>.svc:<port>" gets a loopback port of its own when it is first named, and
// keeps it. Not thread-safe.
class ServiceAddresses {
 public:
  // "<name>:<port>" and "<name>.<namespace>:<port>" are names too, where there is such a service.
  struct ShortNames {
    std::string namespace_name;  // of the pod
    std::function<bool(const std::string& service, const std::string& namespace_name)> is_service;
    // Where one is that has an address of its own; empty: it has none. Null: none has.
    std::function<std::string(const std::string& service, const std::string& namespace_name)>
        address_of;
  };
  // `text` with every such name, also with a cluster domain behind "svc", as "127.0.0.1:<port>".
  // After a port that is named first here come `in_a_row - 1` that nobody else gets: several
  // processes of a pod count on from it.
  StatusOr<std::string> Rewrite(absl::string_view text, int64_t in_a_row = 1,
                                const ShortNames& short_names = {});
  // Where that port of "<name>.<namespace>" is; 0 when nobody has named it yet.
  int Find(const std::string& service, int port) const;

 private:
  StatusOr<int> PortOf(const std::string& service, int port, int64_t in_a_row);
  // "127.0.0.1:<port>", or the service's own address with its own port.
  StatusOr<std::string> PlaceOf(const std::string& service, int port, int64_t in_a_row,
                                const ShortNames& short_names);
  std::map<std::string, int> ports_;
  std::set<int> taken_;
};

}  // namespace weft::platform
