// SPDX-License-Identifier: Apache-2.0
#include "platform/object/probe_checks.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"

namespace weft::platform {
namespace {

void CheckPort(const Json& action, const std::string& path, Problems* problems) {
  const Json* const port = FindField(action, {"port"});
  const std::string at = absl::StrCat(path, ".port");
  if (port != nullptr && port->is_string())
    return CheckName(*port, at, port->AsString().value_or(""), PortNameProblems, problems);
  CheckPortNumber(action, at, port == nullptr ? 0 : port->AsInt().value_or(0), problems);
}

void CheckHttp(const Json& action, const std::string& path, Problems* problems) {
  CheckPort(action, path, problems);
  if (const Json* const headers = FindField(action, {"httpHeaders"})) {
    for (const Json& header : headers->items()) {
      const std::string name = StringField(header, {"name"});
      if (!name.empty() &&
          absl::c_all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '-'; }))
        continue;
      problems->Invalid(header, absl::StrCat(path, ".httpHeaders"), name,
                        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                        "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
    }
  }
  const std::string scheme = StringField(action, {"scheme"});
  if (!scheme.empty() && scheme != "HTTP" && scheme != "HTTPS")
    problems->Unsupported(action, absl::StrCat(path, ".scheme"), scheme, {"HTTP", "HTTPS"});
}

// What is done: by a program, a request, a connection.
void CheckHandler(const Json& handler, const std::string& path, int64_t grace_seconds,
                  Problems* problems) {
  int count = 0;
  for (const char* kind : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const Json* const action = FindField(handler, {kind});
    if (action == nullptr) continue;
    const std::string at = absl::StrCat(path, ".", kind);
    if (count++ > 0) {
      problems->Forbidden(*action, at, "may not specify more than 1 handler type");
      continue;
    }
    const absl::string_view name = kind;
    if (name == "exec") {
      const Json* const command = FindField(*action, {"command"});
      if (command == nullptr || command->size() == 0)
        problems->Required(*action, absl::StrCat(at, ".command"));
    } else if (name == "httpGet") {
      CheckHttp(*action, at, problems);
    } else if (name == "sleep") {
      const int64_t seconds = IntField(*action, {"seconds"});
      if (seconds < 0 || seconds > grace_seconds) {
        problems->Invalid(*action, at, seconds,
                          absl::StrCat("must be non-negative and less than "
                                       "terminationGracePeriodSeconds (",
                                       grace_seconds, ")"));
      }
    } else {
      CheckPort(*action, at, problems);
    }
  }
  if (count == 0) problems->Required(handler, path, "must specify a handler type");
}

void CheckProbe(const Json& probe, const std::string& path, bool is_readiness,
                int64_t grace_seconds, Problems* problems) {
  CheckHandler(probe, path, grace_seconds, problems);
  for (const char* field : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                            "successThreshold", "failureThreshold"}) {
    const int64_t held = IntField(probe, {field});
    if (held < 0) {
      problems->Invalid(probe, absl::StrCat(path, ".", field), held,
                        "must be greater than or equal to 0");
    }
  }
  const Json* const own_grace = FindField(probe, {"terminationGracePeriodSeconds"});
  if (own_grace != nullptr) {
    const std::string at = absl::StrCat(path, ".terminationGracePeriodSeconds");
    const int64_t held = own_grace->AsInt().value_or(0);
    if (held <= 0) problems->Invalid(*own_grace, at, held, "must be greater than 0");
    if (is_readiness)
      problems->Invalid(*own_grace, at, held, "must not be set for readinessProbes");
  }
  const int64_t successes = IntField(probe, {"successThreshold"}, 1);
  if (!is_readiness && successes != 0 && successes != 1)
    problems->Invalid(probe, absl::StrCat(path, ".successThreshold"), successes, "must be 1");
}

}  // namespace

void CheckPortNumber(const Json& at, const std::string& path, int64_t number, Problems* problems) {
  if (number >= 1 && number <= 65535) return;
  problems->Invalid(at, path, number, "must be between 1 and 65535, inclusive");
}

void CheckUserId(const Json& context, const std::string& path, const char* field,
                 Problems* problems) {
  const Json* const id = FindField(context, {field});
  if (id == nullptr) return;
  const int64_t held = id->AsInt().value_or(0);
  if (held >= 0 && held <= INT32_MAX) return;
  problems->Invalid(*id, absl::StrCat(path, ".", field), held,
                    "must be between 0 and 2147483647, inclusive");
}

void CheckProbes(const Json& container, const std::string& path, int64_t grace_seconds,
                 bool may_have_some, Problems* problems) {
  for (const char* name : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    const Json* const held = FindField(container, {name});
    if (held == nullptr) continue;
    const std::string at = absl::StrCat(path, ".", name);
    if (!may_have_some) {
      problems->Forbidden(*held, at,
                          "may not be set for init containers without restartPolicy=Always");
      continue;
    }
    if (absl::string_view(name) != "lifecycle") {
      CheckProbe(*held, at, absl::string_view(name) == "readinessProbe", grace_seconds, problems);
      continue;
    }
    for (const char* hook : {"postStart", "preStop"}) {
      const Json* const handler = FindField(*held, {hook});
      if (handler != nullptr)
        CheckHandler(*handler, absl::StrCat(at, ".", hook), grace_seconds, problems);
    }
  }
}

}  // namespace weft::platform
