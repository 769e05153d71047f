// SPDX-License-Identifier: Apache-2.0
// What Kubernetes' own owners of pods have in common: counts, a template, a selector that fits it.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

// Of a template, and of what is kept beside it.
void DefaultWorkload(const Json* old, Json* object);

// spec.<field> is not below zero.
void CheckCount(const Json& object, const char* field, Problems* problems);
// `spec.replicas`, `minReadySeconds`.
void CheckReplicas(const Json& object, Problems* problems);
// `spec.selector` is there and chooses the pods of the template; "deployment" is how it is called.
void CheckSelectorFits(const Json& object, const char* singular, Problems* problems);
// Its pod. Volumes of a pod may come from elsewhere: then it is checked when it is made.
void CheckTemplateMetadata(const Json& object, Problems* problems);
void CheckTemplatePod(const Json& object, Problems* problems);
// Pods of this kind are always started again.
void CheckRestartsAlways(const Json& object, Problems* problems);
// spec.<field> stays as it was.
void CheckFixed(const Json& old, const Json& object, const char* field, Problems* problems);

// Cells: "1/2", and the containers, images and selector of the template.
Json ReadyCell(const Json& object, absl::Time now);
Json ContainersCell(const Json& object, absl::Time now);
Json ImagesCell(const Json& object, absl::Time now);
Json SelectorCell(const Json& object, absl::Time now);

}  // namespace weft::platform
