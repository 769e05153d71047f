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

class SaveKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Reader> reader, ResourceOfInput<Reader>(c));
    WEFT_ASSIGN_OR_RETURN(std::string state, reader->SaveState());
    c.SetOutput(0, Tensor::Scalar(std::move(state)));
    return absl::OkStatus();
  }
};

class RestoreKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Reader> reader, ResourceOfInput<Reader>(c));
    if (c.input(1).rank() != 0) {
      return InvalidArgument("Reader state must be scalar, but had shape: ",
                             c.input(1).shape().ToString());
    }
    return reader->RestoreState(c.input(1).scalar<std::string>());
  }
};

Status VectorsShape(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

Status NamesShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

void RegisterReader(Catalogue& catalogue, const std::string& kind, const std::string& documentation,
                    bool is_resource, const std::function<void(OpSpec&)>& add_attrs,
                    const MakeOpener& make) {
  OpSpec spec(is_resource ? kind + "V2" : kind);
  spec.Doc(absl::StrCat(documentation,
                        "\nThe files' names come from a queue of strings (ReaderReadV2). Nodes of "
                        "one container and shared name share the reader."))
      .Output(is_resource ? "reader_handle: resource" : "reader_handle: Ref(string)");
  add_attrs(spec);
  if (!is_resource && kind != "WholeFileReader") {
    spec.Deprecated(26, absl::StrCat("Use ", kind, "V2"));
  }
  spec.Stateful()
      .Shape(is_resource ? ShapeFunction(shapes::Scalar) : ShapeFunction(NamesShape))
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

void RegisterReaders(Catalogue& catalogue, bool is_resource) {
  RegisterReader(
      catalogue, "TextLineReader", "Gives the lines of text files; keys are 'file:line'.",
      is_resource, [](OpSpec& spec) { AddNames(spec.Attr("skip_header_lines: int = 0")); },
      [](const KernelConstruction& c) -> StatusOr<OpenSource> {
        return TextLines(c.AttrOr<int64_t>("skip_header_lines", 0));
      });
  RegisterReader(
      catalogue, "TFRecordReader", "Gives the records of TFRecord files; keys are 'file:offset'.",
      is_resource,
      [](OpSpec& spec) {
        AddNames(spec);
        spec.Attr("compression_type: string = ''");
      },
      [](const KernelConstruction& c) -> StatusOr<OpenSource> {
        return TfRecords(c.AttrOr<std::string>("compression_type", ""));
      });
  RegisterReader(
      catalogue, "WholeFileReader", "Gives files as they are; keys are their names.", is_resource,
      [](OpSpec& spec) { AddNames(spec); },
      [](const KernelConstruction&) -> StatusOr<OpenSource> { return WholeFiles(); });
  RegisterReader(
      catalogue, "IdentityReader", "Gives the names in the queue themselves, as keys and values.",
      is_resource, [](OpSpec& spec) { AddNames(spec); },
      [](const KernelConstruction&) -> StatusOr<OpenSource> { return Identities(); });
  RegisterReader(
      catalogue, "FixedLengthRecordReader",
      "Gives records of record_bytes each, hop_bytes apart, between a header and a footer; keys "
      "are "
      "'file:number'.",
      is_resource,
      [is_resource](OpSpec& spec) {
        spec.Attr("header_bytes: int = 0")
            .Attr("record_bytes: int")
            .Attr("footer_bytes: int = 0")
            .Attr("hop_bytes: int = 0");
        AddNames(spec);
        if (is_resource) spec.Attr("encoding: string = ''");
      },
      [](const KernelConstruction& c) -> StatusOr<OpenSource> {
        return FixedLengthRecords({.header_bytes = c.AttrOr<int64_t>("header_bytes", 0),
                                   .record_bytes = c.AttrOr<int64_t>("record_bytes", 0),
                                   .footer_bytes = c.AttrOr<int64_t>("footer_bytes", 0),
                                   .hop_bytes = c.AttrOr<int64_t>("hop_bytes", 0),
                                   .compression = c.AttrOr<std::string>("encoding", "")});
      });
}

// An op on a reader, in one of the forms of its handle.
OpSpec Use(const std::string& name, bool is_resource) {
  OpSpec spec(is_resource ? name + "V2" : name);
  spec.Input(is_resource ? "reader_handle: resource" : "reader_handle: Ref(string)").NoGradient();
  if (is_resource) spec.Stateful();
  return spec;
}

const char* QueueInput(bool is_resource) {
  return is_resource ? "queue_handle: resource" : "queue_handle: Ref(string)";
}

void RegisterReads(Catalogue& catalogue, bool is_resource) {
  catalogue.Add(Use("ReaderRead", is_resource)
                    .Doc("The next record, of the next file in the queue where one is at its end; "
                         "waits for it.\nOutOfRange when the queue is closed and empty.")
                    .Input(QueueInput(is_resource))
                    .Output("key: string")
                    .Output("value: string")
                    .Shape(shapes::Scalar)
                    .Kernel(MakeKernel<ReadKernel<false>>(), KernelCost::kBlocking));
  catalogue.Add(
      Use("ReaderReadUpTo", is_resource)
          .Doc("The next records of one file, at most num_records and at least one; waits for "
               "it.\nOutOfRange when the queue is closed and empty.")
          .Input(QueueInput(is_resource))
          .Input("num_records: int64")
          .Output("keys: string")
          .Output("values: string")
          .Shape(VectorsShape)
          .Kernel(MakeKernel<ReadKernel<true>>(), KernelCost::kBlocking));
}

void RegisterState(Catalogue& catalogue, bool is_resource) {
  catalogue.Add(
      Use("ReaderNumRecordsProduced", is_resource)
          .Doc("How many records the reader has given.")
          .Output("records_produced: int64")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<CountKernel<&Reader::Counts::records>>(), KernelCost::kInline));
  catalogue.Add(
      Use("ReaderNumWorkUnitsCompleted", is_resource)
          .Doc("How many files the reader has read to their end.")
          .Output("units_completed: int64")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<CountKernel<&Reader::Counts::works>>(), KernelCost::kInline));
  catalogue.Add(Use("ReaderReset", is_resource)
                    .Doc("Lets the reader forget its file and its counts.\nFailedPrecondition "
                         "while a step reads it.")
                    .Shape(shapes::NoOutputs)
                    .Kernel(MakeKernel<ResetKernel>(), KernelCost::kInline));
  catalogue.Add(Use("ReaderSerializeState", is_resource)
                    .Doc("What the reader has done so far.\nUnimplemented for readers that stop "
                         "inside of files.")
                    .Output("state: string")
                    .Shape(shapes::Scalar)
                    .Kernel(MakeKernel<SaveKernel>(), KernelCost::kInline));
  catalogue.Add(Use("ReaderRestoreState", is_resource)
                    .Doc("Puts the reader where it was when it gave this state.\nInvalidArgument "
                         "for a state of another kind of reader.")
                    .Input("state: string")
                    .Shape(shapes::NoOutputs)
                    .Kernel(MakeKernel<RestoreKernel>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool is_resource : {false, true}) {
    RegisterReaders(catalogue, is_resource);
    RegisterReads(catalogue, is_resource);
    RegisterState(catalogue, is_resource);
  }
}

}  // namespace weft::ops::state::reader
