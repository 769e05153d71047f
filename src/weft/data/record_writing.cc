// SPDX-License-Identifier: Apache-2.0
// Datasets written to TFRecord files, and elements squeezed into one variant.
#include <utility>

#include <snappy.h>

#include "weft/data/dataset_op.h"
#include "weft/data/run_apart.h"
#include "weft/storage/tfrecord.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::data::record_writing {
namespace {

class ToRecordsKernel final : public ApartKernel<ToRecordsKernel> {
 public:
  static Status Work(KernelContext& c) {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetInput(c));
    WEFT_ASSIGN_OR_RETURN(const std::string path, ScalarInput<std::string>(c, "filename"));
    WEFT_ASSIGN_OR_RETURN(const std::string kind, ScalarInput<std::string>(c, "compression_type"));
    WEFT_ASSIGN_OR_RETURN(const storage::Compression compression,
                          storage::CompressionFromName(kind));
    const ContextPtr context = IteratorContext::OfStep(c);
    WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context->files());
    WEFT_ASSIGN_OR_RETURN(const auto writer,
                          storage::RecordWriter::Create(*files, path, compression));
    WEFT_ASSIGN_OR_RETURN(const IteratorPtr iterator, dataset->MakeIterator(context));
    while (true) {
      Element element;
      WEFT_ASSIGN_OR_RETURN(const bool found, iterator->Next(&element));
      if (!found) break;
      if (element.size() != 1 || element[0].dtype() != DType::kString ||
          !element[0].shape().IsScalar()) {
        return InvalidArgument("Elements that become records must be scalar strings");
      }
      WEFT_RETURN_IF_ERROR(writer->Write(element[0].scalar<std::string>()));
    }
    return writer->Close();
  }
};

// The components as TensorProtos, which snappy has squeezed.
class Compressed final : public VariantValue {
 public:
  explicit Compressed(std::vector<std::string> components) : components_(std::move(components)) {}
  absl::string_view type_name() const override { return "tensorflow.data.CompressedElement"; }
  const std::vector<std::string>& components() const { return components_; }

 private:
  const std::vector<std::string> components_;
};

class CompressKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    std::vector<std::string> components;
    for (int i = 0; i < c.num_inputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const std::string bytes, SerializeTensorProto(c.input(i)));
      snappy::Compress(bytes.data(), bytes.size(), &components.emplace_back());
    }
    c.SetOutput(0, Tensor::Scalar(Variant{MakeRef<Compressed>(std::move(components))}));
    return absl::OkStatus();
  }
};

class UncompressKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& given = c.input(0);
    const auto* value = given.num_elements() == 1
                            ? dynamic_cast<const Compressed*>(given.data<Variant>()->value.get())
                            : nullptr;
    if (value == nullptr) {
      return InvalidArgument("Tensor does not contain a compressed element: ",
                             given.shape().ToString());
    }
    if (static_cast<int>(value->components().size()) != c.num_outputs()) {
      return FailedPrecondition("Expected ", c.num_outputs(), " outputs from uncompress, but got ",
                                value->components().size());
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      const std::string& squeezed = value->components()[static_cast<size_t>(i)];
      std::string bytes;
      if (!snappy::Uncompress(squeezed.data(), squeezed.size(), &bytes)) {
        return Internal("Component ", i, " cannot be uncompressed");
      }
      WEFT_ASSIGN_OR_RETURN(Tensor component, ParseTensorProto(bytes));
      if (component.dtype() != c.output_dtype(i)) {
        return FailedPrecondition("Expected a tensor of type ", DTypeName(c.output_dtype(i)),
                                  " but got a tensor of type ", DTypeName(component.dtype()));
      }
      c.SetOutput(i, std::move(component));
    }
    return absl::OkStatus();
  }
};

Status ElementShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.Attr<AttrValue::ShapeList>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const char* name : {"DatasetToTFRecord", "ExperimentalDatasetToTFRecord"}) {
    catalogue.Add(
        OpSpec(name)
            .Doc("Writes the elements of a dataset, scalar strings, as records of a file.")
            .Input("input_dataset: variant")
            .Input("filename: string")
            .Input("compression_type: string")
            .Stateful()
            .Shape(shapes::NoOutputs)
            .NoGradient()
            .Kernel(MakeKernel<ToRecordsKernel>()));
  }
  catalogue.Add(OpSpec("CompressElement")
                    .Doc("The components of an element as one variant, squeezed.")
                    .Input("components: input_types")
                    .Output("compressed: variant")
                    .Attr("input_types: list(type) >= 1")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CompressKernel>()));
  catalogue.Add(OpSpec("UncompressElement")
                    .Doc("The components that CompressElement was given.\nFailedPrecondition "
                         "where they are others than declared.")
                    .Input("compressed: variant")
                    .Output("components: output_types")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Shape(ElementShape)
                    .NoGradient()
                    .Kernel(MakeKernel<UncompressKernel>()));
}

}  // namespace weft::data::record_writing
