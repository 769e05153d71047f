// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

constexpr char kGroup[] = "kubeflow.org";

}  // namespace

const ResourceType& Experiments() {
  static const ResourceType& type = *FindKind(kGroup, "Experiment");
  return type;
}

const ResourceType& Trials() {
  static const ResourceType& type = *FindKind(kGroup, "Trial");
  return type;
}

const ResourceType& Suggestions() {
  static const ResourceType& type = *FindKind(kGroup, "Suggestion");
  return type;
}

}  // namespace weft::platform
