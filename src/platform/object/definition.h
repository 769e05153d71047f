// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions: those that a cluster needs to know our kinds, written from the kinds,
// and those of others, read as types that are served.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/object/field_reader.h"
#include "platform/object/resource_type.h"

namespace weft::platform {

// `problems` names the fields of the definition that make no sense.
ResourceType ReadDefinition(const Json& definition, Problems* problems);

// Of a custom type of this program that has a schema.
Json MakeDefinition(const ResourceType& type);
// The same as a file for `kubectl apply`, short: what fits on a line stands on one, and what is
// said twice has an anchor.
std::string DefinitionFile(const ResourceType& type);

// What a pod's template may hold, by the facts of Kubernetes' own types.
Json TemplateSchema();

}  // namespace weft::platform
