// SPDX-License-Identifier: Apache-2.0
// Pods and services of one machine that are to have addresses of their own, as on a cluster: each
// gets one of 127.0.0.0/8, which all lead to this machine.
#pragma once

#include <string>

#include "net/json.h"

namespace weft::platform {

// "true" on a pod: it listens at its status.podIP. On a service: its clusterIP leads to its pods.
// Without it pods are at 127.0.0.1, where two cannot listen at one port.
inline constexpr char kOwnAddressAnnotation[] = "weft.dev/own-address";

// Empty where the object does not ask for one. It follows from the pod's uid, or from the service's
// name and namespace.
std::string OwnAddressOfPod(const Json& pod);
std::string OwnAddressOfService(const Json& service);

}  // namespace weft::platform
