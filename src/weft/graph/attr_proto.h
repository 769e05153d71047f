// SPDX-License-Identifier: Apache-2.0
// AttrValue <-> tensorflow.AttrValue: for graph_proto.cc, which is what others include.
#pragma once

#include <cstdint>
#include <string>

#include "proto/tensorflow/attr_value.pb.h"
#include "weft/graph/attr_value.h"

namespace weft {

// Reads the attributes of one message; what repeated values may grow to is counted over all of
// them, so that a small message cannot ask for much memory. Not thread-safe.
class AttrReader {
 public:
  using ProtoMap = google::protobuf::Map<std::string, tensorflow::AttrValue>;

  StatusOr<AttrValue> Read(const tensorflow::AttrValue& proto);
  // Errors name the attribute.
  Status ReadMap(const ProtoMap& protos, AttrMap* attrs);

 private:
  StatusOr<AttrValue> ReadList(const tensorflow::AttrValue& proto);
  StatusOr<Tensor> ReadTensor(const tensorflow::TensorProto& proto);
  StatusOr<FunctionRef> ReadFunction(const tensorflow::NameAttrList& proto);

  int64_t growth_left_ = int64_t{4} << 30;
};

}  // namespace weft
