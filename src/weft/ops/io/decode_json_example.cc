// SPDX-License-Identifier: Apache-2.0
// Records (tensorflow.Example) from their JSON form.
#include <string>

#include <google/protobuf/util/json_util.h>

#include "proto/tensorflow/example.pb.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::io::decode_json_example {
namespace {

class DecodeJsonKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(0).shape()));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      tensorflow::Example record;
      const auto parsed =
          google::protobuf::util::JsonStringToMessage(c.input(0).data<std::string>()[i], &record);
      if (!parsed.ok()) {
        return InvalidArgument("Error while parsing JSON: ", std::string(parsed.message()),
                               " (element ", i, ")");
      }
      out->data<std::string>()[i] = record.SerializeAsString();
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DecodeJSONExample")
                    .Doc("Serialized tensorflow.Example records from their JSON form.\n"
                         "InvalidArgument for other text.")
                    .Input("json_examples: string")
                    .Output("binary_examples: string")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeJsonKernel>()));
}

}  // namespace weft::ops::io::decode_json_example
