// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/slice_table.h"

#include <optional>
#include <utility>

#include "proto/tensorflow/tensor_bundle.pb.h"
#include "weft/storage/bundle_format.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::storage {
namespace {

constexpr absl::string_view kMetaKey = "";
constexpr int kFormatVersion = 1;

// The values in the field of their type: readers of this format look nowhere else.
Status FillValues(const Tensor& tensor, tensorflow::TensorProto* proto) {
  const auto fill = [&](auto* field, auto&& convert) {
    for (const auto& value : tensor.span<std::decay_t<decltype(convert)>>()) field->Add(value);
  };
  switch (tensor.dtype()) {
    case DType::kFloat:
      return fill(proto->mutable_float_val(), float{}), absl::OkStatus();
    case DType::kDouble:
      return fill(proto->mutable_double_val(), double{}), absl::OkStatus();
    case DType::kInt32:
      return fill(proto->mutable_int_val(), int32_t{}), absl::OkStatus();
    case DType::kUint8:
      return fill(proto->mutable_int_val(), uint8_t{}), absl::OkStatus();
    case DType::kInt16:
      return fill(proto->mutable_int_val(), int16_t{}), absl::OkStatus();
    case DType::kInt8:
      return fill(proto->mutable_int_val(), int8_t{}), absl::OkStatus();
    case DType::kInt64:
      return fill(proto->mutable_int64_val(), int64_t{}), absl::OkStatus();
    case DType::kBool:
      return fill(proto->mutable_bool_val(), bool{}), absl::OkStatus();
    case DType::kString:
      for (const std::string& text : tensor.span<std::string>()) proto->add_string_val(text);
      return absl::OkStatus();
    case DType::kComplex64:
      for (const Complex64& x : tensor.span<Complex64>()) {
        proto->add_scomplex_val(x.real());
        proto->add_scomplex_val(x.imag());
      }
      return absl::OkStatus();
    case DType::kComplex128:
      for (const Complex128& x : tensor.span<Complex128>()) {
        proto->add_dcomplex_val(x.real());
        proto->add_dcomplex_val(x.imag());
      }
      return absl::OkStatus();
    case DType::kHalf:
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        proto->add_half_val(tensor.bits<uint16_t>()[i]);
      }
      return absl::OkStatus();
    default:
      return Unimplemented("Saving data type ", DTypeName(tensor.dtype()),
                           " in a V1 checkpoint is not supported: use SaveV2");
  }
}

// How many values the message holds for elements of `dtype`.
int64_t NumValues(const tensorflow::TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return proto.float_val_size();
    case DType::kDouble:
      return proto.double_val_size();
    case DType::kInt64:
      return proto.int64_val_size();
    case DType::kBool:
      return proto.bool_val_size();
    case DType::kString:
      return proto.string_val_size();
    case DType::kComplex64:
      return proto.scomplex_val_size() / 2;
    case DType::kComplex128:
      return proto.dcomplex_val_size() / 2;
    case DType::kHalf:
      return proto.half_val_size();
    default:
      return proto.int_val_size();
  }
}

StatusOr<std::string> MetaOf(absl::Span<const SliceToSave> slices) {
  tensorflow::SavedTensorSlices record;
  std::map<std::string, tensorflow::SavedSliceMeta*> by_name;
  for (const SliceToSave& saved : slices) {
    tensorflow::SavedSliceMeta*& meta = by_name[saved.name];
    if (meta == nullptr) {
      meta = record.mutable_meta()->add_tensor();
      meta->set_name(saved.name);
      ShapeToProto(saved.full_shape, meta->mutable_shape());
      meta->set_type(static_cast<tensorflow::DataType>(saved.tensor->dtype()));
    } else if (meta->type() != static_cast<tensorflow::DataType>(saved.tensor->dtype())) {
      return InvalidArgument("Parts of tensor '", saved.name, "' are of different types");
    }
    saved.slice.ToProto(meta->add_slice());
  }
  record.mutable_meta()->mutable_versions()->set_producer(kFormatVersion);
  return record.SerializeAsString();
}

}  // namespace

Status WriteSliceTable(FileSystem& files, const std::string& path,
                       absl::Span<const SliceToSave> slices) {
  std::map<std::string, std::string> records;
  WEFT_ASSIGN_OR_RETURN(records[std::string(kMetaKey)], MetaOf(slices));
  for (const SliceToSave& saved : slices) {
    tensorflow::SavedTensorSlices record;
    record.mutable_data()->set_name(saved.name);
    saved.slice.ToProto(record.mutable_data()->mutable_slice());
    WEFT_RETURN_IF_ERROR(Annotate(FillValues(*saved.tensor, record.mutable_data()->mutable_data()),
                                  absl::StrCat("Tensor '", saved.name, "'")));
    constexpr size_t kMostBytes = size_t{1} << 31;
    if (record.ByteSizeLong() >= kMostBytes) {
      return InvalidArgument("Tensor slice is too large to serialize: '", saved.name, "'");
    }
    if (records.emplace(BundleSliceKey(saved.name, saved.slice), record.SerializeAsString())
            .second) {
      continue;
    }
    return InvalidArgument("Tensor '", saved.name, "' is saved twice");
  }
  const std::string temporary = absl::StrCat(path, ".tempstate");
  WEFT_ASSIGN_OR_RETURN(auto file, files.OpenWrite(temporary, WriteMode::kTruncate));
  const std::unique_ptr<ByteSink> sink = MakeSink(std::move(file), temporary, Compression::kNone);
  TableWriter writer(sink.get());
  Status status;
  for (const auto& [key, value] : records) status.Update(writer.Add(key, value));
  status.Update(writer.Finish());
  status.Update(sink->Close());
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) (void)files.Delete(temporary);
  return status;
}

StatusOr<std::unique_ptr<SliceTables>> SliceTables::Open(FileSystem& files,
                                                         absl::Span<const std::string> paths) {
  auto tables = std::unique_ptr<SliceTables>(new SliceTables());
  for (const std::string& path : paths) WEFT_RETURN_IF_ERROR(tables->Add(files, path));
  return tables;
}

Status SliceTables::Add(FileSystem& files, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(auto table, Table::Open(files, path));
  WEFT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, table->Find(kMetaKey));
  tensorflow::SavedTensorSlices record;
  if (!bytes || !record.ParseFromString(*bytes)) {
    return DataLoss(path, " does not say which tensors it holds: it is no V1 checkpoint");
  }
  if (record.meta().versions().min_consumer() > kFormatVersion) {
    return InvalidArgument(path, " is for readers of version ",
                           record.meta().versions().min_consumer(), " and newer");
  }
  for (const tensorflow::SavedSliceMeta& meta : record.meta().tensor()) {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(meta.shape()));
    WEFT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(meta.type()));
    Entry& entry = entries_[meta.name()];
    if (!entry.parts.empty() && (!(entry.shape == shape) || entry.dtype != dtype)) {
      return InvalidArgument("Tensor '", meta.name(), "' is another one in ", path);
    }
    entry.shape = shape;
    entry.dtype = dtype;
    for (const tensorflow::TensorSliceProto& proto : meta.slice()) {
      WEFT_ASSIGN_OR_RETURN(TensorSlice slice, TensorSlice::FromProto(proto));
      WEFT_RETURN_IF_ERROR(slice.Within(shape).status());
      entry.parts.push_back({std::move(slice), tables_.size()});
    }
  }
  tables_.push_back(std::move(table));
  return absl::OkStatus();
}

StatusOr<const SliceTables::Entry*> SliceTables::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return &found->second;
  return NotFound("Tensor name \"", name, "\" not found in checkpoint files");
}

StatusOr<DType> SliceTables::TypeOf(const std::string& name) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  return entry->dtype;
}

StatusOr<Shape> SliceTables::ShapeOf(const std::string& name) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  return entry->shape;
}

StatusOr<Tensor> SliceTables::LoadPart(const std::string& name, const Entry& entry,
                                       const Part& part) const {
  const Table& table = *tables_[part.table];
  WEFT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                        table.Find(BundleSliceKey(name, part.slice)));
  tensorflow::SavedTensorSlices record;
  if (!bytes || !record.ParseFromString(*bytes)) {
    return DataLoss(table.path(), " lacks a part of tensor '", name, "' that it should hold");
  }
  WEFT_ASSIGN_OR_RETURN(const TensorSlice slice, part.slice.Within(entry.shape));
  tensorflow::TensorProto* const data = record.mutable_data()->mutable_data();
  if (NumValues(*data, entry.dtype) != slice.shape().num_elements()) {
    return DataLoss(table.path(), " has ", NumValues(*data, entry.dtype), " values of tensor '",
                    name, "', expected ", slice.shape().num_elements());
  }
  data->set_dtype(static_cast<tensorflow::DataType>(entry.dtype));
  data->clear_tensor_content();
  ShapeToProto(slice.shape(), data->mutable_tensor_shape());
  return TensorFromProto(*data);
}

StatusOr<Tensor> SliceTables::Read(const std::string& name) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  return ReadSlice(name, TensorSlice::Full(entry->shape.rank()));
}

StatusOr<Tensor> SliceTables::ReadSlice(const std::string& name, const TensorSlice& slice) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  WEFT_ASSIGN_OR_RETURN(const TensorSlice wanted, slice.Within(entry->shape));
  // Parts of one tensor do not overlap: who wrote them has cut it. They are read before room is
  // made for the whole, whose size a damaged file may have made up.
  int64_t missing = wanted.shape().num_elements();
  std::vector<std::pair<TensorSlice, Tensor>> parts;
  for (const Part& part : entry->parts) {
    WEFT_ASSIGN_OR_RETURN(TensorSlice stored, part.slice.Within(entry->shape));
    TensorSlice both;
    if (!Intersect(stored, wanted, &both)) continue;
    WEFT_ASSIGN_OR_RETURN(Tensor values, LoadPart(name, *entry, part));
    missing -= both.shape().num_elements();
    parts.emplace_back(std::move(stored), std::move(values));
  }
  if (missing <= 0) {
    WEFT_ASSIGN_OR_RETURN(Tensor result, Tensor::Zeros(entry->dtype, wanted.shape()));
    for (const auto& [stored, values] : parts) CopyShared(stored, values, wanted, &result);
    return result;
  }
  return InvalidArgument("Tensor \"", name, "\": the checkpoint does not hold all of slice ",
                         slice.ToString());
}

}  // namespace weft::storage
