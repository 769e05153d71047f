// SPDX-License-Identifier: Apache-2.0
// The files that a model server is told things in: messages as text.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "base/files.h"
#include "base/status.h"
#include "proto/serving/config.pb.h"
#include "weft/serving/batcher.h"
#include "weft/wire/grpc_service.h"

namespace weft::serving {

// InvalidArgument names `from`, line and column.
Status ParseTextMessage(const std::string& text, const std::string& from,
                        google::protobuf::Message* message);
Status ReadTextMessage(FileSystem& files, const std::string& path,
                       google::protobuf::Message* message);

// InvalidArgument as CheckBatchingOptions gives.
StatusOr<BatchingOptions> BatchingFrom(const tensorflow::serving::BatchingParameters& parameters);
// InvalidArgument names what is missing.
StatusOr<wire::PortSecurity> SecurityFrom(const tensorflow::serving::SSLConfig& config);
// A token a line; empty lines and those that begin with # do not count. InvalidArgument for a file
// without any, or one with a token under 16 characters.
StatusOr<std::vector<std::string>> ReadTokens(FileSystem& files, const std::string& path);

}  // namespace weft::serving
