// SPDX-License-Identifier: Apache-2.0
// Readers of files as ops: lines, TFRecords, records of fixed length, whole files.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/reader_kernel.h"
#include "weft/ops/state/resource_handle_kernel.h"

namespace weft::ops::state::reader {
namespace {

using MakeOpener = std::function<StatusOr<OpenSource>(const KernelConstruction&)>;

class CreateKernel final : public OpKernel {
 public:
  CreateKernel(const KernelConstruction& c, std::string kind, OpenSource open)
      : kind_(std::move(kind)), open_(std::move(open)), output_(c, "tensorflow::ReaderInterface") {}

  Status Compute(KernelContext& c) override {
    return output_.Give(
        c, [&]() -> StatusOr<Ref<Reader>> { return MakeRef<Reader>(kind_, output_.name(), open_); },
        [&](const Reader& reader) -> Status {
          if (reader.kind() == kind_) return absl::OkStatus();
          return InvalidArgument("'", output_.name(), "' is a ", reader.kind(), ", not a ", kind_);
        });
  }

 private:
  const std::string kind_;
  const OpenSource open_;
  HandleOutput<Reader> output_;
};

template <bool up_to>
class ReadKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Reader>> reader = ResourceOfInput<Reader>(c);
    if (!reader.ok()) return done(reader.status());
    StatusOr<Ref<Queue>> names = ResourceOfInput<Queue>(c, 1);
    if (!names.ok()) return done(names.status());
    int64_t most = 1;
    if constexpr (up_to) {
      if (c.input(2).rank() != 0 || c.input(2).scalar<int64_t>() <= 0) {
        return done(
            InvalidArgument("num_records must be a scalar above 0, got ", c.input(2).ToString()));
      }
      most = c.input(2).scalar<int64_t>();
    }
    (*reader)->Read(Caller::Of(c), *std::move(names), c.environment().files, most,
                    [&c, done = std::move(done)](StatusOr<Reader::Records> records) mutable {
                      if (!records.ok()) return done(records.status());
                      done(Give(c, *std::move(records)));
                    });
  }

 private:
  static Status Give(KernelContext& c, Reader::Records records) {
    const Shape shape = up_to ? Shape{static_cast<int64_t>(records.size())} : Shape();
    WEFT_ASSIGN_OR_RETURN(Tensor * keys, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, shape));
    for (size_t i = 0; i < records.size(); ++i) {
      keys->data<std::string>()[i] = std::move(records[i].key);
      values->data<std::string>()[i] = std::move(records[i].value);
    }
    return absl::OkStatus();
  }
};

template <int64_t Reader::Counts::*count>
class CountKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Reader> reader, ResourceOfInput<Reader>(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<int64_t>() = reader->counts().*count;
    return absl::OkStatus();
  }
};

class ResetKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Reader> reader, ResourceOfInput<Reader>(c));
    return reader->Reset();
  }
};

Status VectorsShape(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

void RegisterReader(Catalogue& catalogue, const std::string& kind, const std::string& documentation,
                    const std::function<void(OpSpec&)>& add_attrs, const MakeOpener& make) {
  OpSpec spec(kind + "V2");
  spec.Doc(absl::StrCat(documentation,
                        "\nThe files' names come from a queue of strings (ReaderReadV2). Nodes of "
                        "one container and shared name share the reader."))
      .Output("reader_handle: resource");
  add_attrs(spec);
  spec.Stateful()
      .Shape(shapes::Scalar)
      .NoGradient()
      .Kernel(
          [kind, make](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
            WEFT_ASSIGN_OR_RETURN(OpenSource open, make(c));
            return std::make_unique<CreateKernel>(c, kind, std::move(open));
          },
          KernelCost::kInline);
  catalogue.Add(std::move(spec));
}

void AddNames(OpSpec& spec) {
  spec.Attr("container: string = ''").Attr("shared_name: string = ''");
}

void RegisterReaders(Catalogue& catalogue) {
  RegisterReader(
      catalogue, "TextLineReader", "Gives the lines of text files; keys are 'file:line'.",
      [](OpSpec& spec) { AddNames(spec.Attr("skip_header_lines: int = 0")); },
      [](const KernelConstruction& c) -> StatusOr<OpenSource> {
        return TextLines(c.AttrOr<int64_t>("skip_header_lines", 0));
      });
  RegisterReader(
      catalogue, "TFRecordReader", "Gives the records of TFRecord files; keys are 'file:offset'.",
      [](OpSpec& spec) {
        AddNames(spec);
        spec.Attr("compression_type: string = ''");
      },
      [](const KernelConstruction& c) -> StatusOr<OpenSource> {
        return TfRecords(c.AttrOr<std::string>("compression_type", ""));
      });
  RegisterReader(
      catalogue, "WholeFileReader", "Gives files as they are; keys are their names.",
      [](OpSpec& spec) { AddNames(spec); },
      [](const KernelConstruction&) -> StatusOr<OpenSource> { return WholeFiles(); });
  RegisterReader(
      catalogue, "IdentityReader", "Gives the names in the queue themselves, as keys and values.",
      [](OpSpec& spec) { AddNames(spec); },
      [](const KernelConstruction&) -> StatusOr<OpenSource> { return Identities(); });
  RegisterReader(
      catalogue, "FixedLengthRecordReader",
      "Gives records of record_bytes each, hop_bytes apart, between a header and a footer; keys "
      "are "
      "'file:number'.",
      [](OpSpec& spec) {
        spec.Attr("header_bytes: int = 0")
            .Attr("record_bytes: int")
            .Attr("footer_bytes: int = 0")
            .Attr("hop_bytes: int = 0");
        AddNames(spec);
        spec.Attr("encoding: string = ''");
      },
      [](const KernelConstruction& c) -> StatusOr<OpenSource> {
        return FixedLengthRecords({.header_bytes = c.AttrOr<int64_t>("header_bytes", 0),
                                   .record_bytes = c.AttrOr<int64_t>("record_bytes", 0),
                                   .footer_bytes = c.AttrOr<int64_t>("footer_bytes", 0),
                                   .hop_bytes = c.AttrOr<int64_t>("hop_bytes", 0),
                                   .compression = c.AttrOr<std::string>("encoding", "")});
      });
}

// An op on a reader.
OpSpec Use(const std::string& name) {
  OpSpec spec(name);
  spec.Input("reader_handle: resource").Stateful().NoGradient();
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterReaders(catalogue);
  catalogue.Add(Use("ReaderReadV2")
                    .Doc("The next record, of the next file in the queue where one is at its end; "
                         "waits for it.\nOutOfRange when the queue is closed and empty.")
                    .Input("queue_handle: resource")
                    .Output("key: string")
                    .Output("value: string")
                    .Shape(shapes::Scalar)
                    .Kernel(MakeKernel<ReadKernel<false>>(), KernelCost::kBlocking));
  catalogue.Add(
      Use("ReaderReadUpToV2")
          .Doc("The next records of one file, at most num_records and at least one; waits for "
               "it.\nOutOfRange when the queue is closed and empty.")
          .Input("queue_handle: resource")
          .Input("num_records: int64")
          .Output("keys: string")
          .Output("values: string")
          .Shape(VectorsShape)
          .Kernel(MakeKernel<ReadKernel<true>>(), KernelCost::kBlocking));
  catalogue.Add(
      Use("ReaderNumRecordsProducedV2")
          .Doc("How many records the reader has given.")
          .Output("records_produced: int64")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<CountKernel<&Reader::Counts::records>>(), KernelCost::kInline));
  catalogue.Add(
      Use("ReaderNumWorkUnitsCompletedV2")
          .Doc("How many files the reader has read to their end.")
          .Output("units_completed: int64")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<CountKernel<&Reader::Counts::works>>(), KernelCost::kInline));
  catalogue.Add(Use("ReaderResetV2")
                    .Doc("Lets the reader forget its file and its counts.\nFailedPrecondition "
                         "while a step reads it.")
                    .Shape(shapes::NoOutputs)
                    .Kernel(MakeKernel<ResetKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::reader
