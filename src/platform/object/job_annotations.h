// SPDX-License-Identifier: Apache-2.0
// What a TFJob may ask of weft beyond the reference operator's fields, so that the same file suits
// both.
#pragma once

#include "absl/strings/string_view.h"

#include "net/json.h"
#include "platform/object/field_reader.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

inline constexpr char kTaskFlagsAnnotation[] = "weft.dev/task-flags";     // "true", "false"
inline constexpr char kTrialAnnotation[] = "weft.dev/trial";              // "3"
inline constexpr char kRestartAnnotation[] = "weft.dev/restart";          // "task", "job"
inline constexpr char kTensorBoardAnnotation[] = "weft.dev/tensorboard";  // "/summary"
inline constexpr char kTensorBoardImageAnnotation[] = "weft.dev/tensorboard-image";
inline constexpr char kTaskSecurityAnnotation[] = "weft.dev/task-security";  // "tls", "insecure"
inline constexpr char kInsecureClientsAnnotation[] = "weft.dev/insecure-clients";  // "app=notebook"
inline constexpr char kPackingAnnotation[] = "weft.dev/packing";  // "auto", "node", "never"
// {"stepSeconds": 0.02, "bytesPerStep": "50Mi", "networkBytesPerSecond": "1250M"}
inline constexpr char kCostsAnnotation[] = "weft.dev/costs";

bool IsJobAnnotation(absl::string_view name);

// From metadata.annotations. Others of the prefix are problems, with the nearest name.
void ReadJobAnnotations(const Json& metadata, Problems* problems, JobExtras* extras);

// A trial's number, a folder of pods, and labels of pods ("app=notebook,team=a"), checked alike in
// either kind of job.
void CheckTrial(const Json& at, const std::string& path, const std::string& trial,
                Problems* problems);
void CheckFolder(const Json& at, const std::string& path, const std::string& folder,
                 Problems* problems);
void ReadClients(const Json& at, const std::string& path, const std::string& labels,
                 Problems* problems, JobExtras* extras);
// Clients that are named where tasks are not insecure, by the name of the field for that.
void CheckClients(const Json& at, const std::string& path, const std::string& security,
                  const JobExtras& extras, Problems* problems);

}  // namespace weft::platform
