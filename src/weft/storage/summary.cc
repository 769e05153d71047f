// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/summary.h"

#include <cmath>
#include <set>

#include "proto/tensorflow/summary.pb.h"
#include "weft/storage/histogram.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::storage {
namespace {

tensorflow::Summary::Value* AddValue(absl::string_view tag, tensorflow::Summary* summary) {
  tensorflow::Summary::Value* value = summary->add_value();
  value->set_tag(std::string(tag));
  return value;
}

template <typename T>
Status AddAll(absl::string_view tag, const Tensor& values, Histogram* histogram) {
  for (const T& element : values.span<T>()) {
    const auto value = static_cast<double>(element);
    if (std::isnan(value)) return InvalidArgument("Nan in summary histogram for: ", tag);
    if (std::isinf(value)) return InvalidArgument("Infinity in summary histogram for: ", tag);
    histogram->Add(value);
  }
  return absl::OkStatus();
}

}  // namespace

std::string ScalarSummary(absl::string_view tag, float value) {
  tensorflow::Summary summary;
  AddValue(tag, &summary)->set_simple_value(value);
  return summary.SerializeAsString();
}

StatusOr<std::string> HistogramSummary(absl::string_view tag, const Tensor& values) {
  Histogram histogram;
  Status status;
  const bool real = VisitDType(values.dtype(), RealNumbers(),
                               [&]<typename T>() { status = AddAll<T>(tag, values, &histogram); });
  if (!real) {
    return InvalidArgument("Summary histogram needs real numbers, got ", DTypeName(values.dtype()),
                           " for: ", tag);
  }
  WEFT_RETURN_IF_ERROR(status);
  tensorflow::Summary summary;
  histogram.ToProto(AddValue(tag, &summary)->mutable_histo());
  return summary.SerializeAsString();
}

StatusOr<std::string> TextSummary(absl::string_view tag, const Tensor& text) {
  if (text.dtype() != DType::kString) {
    return InvalidArgument("Summary of text needs strings, got ", DTypeName(text.dtype()),
                           " for: ", tag);
  }
  tensorflow::SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("text");
  metadata.set_data_class(tensorflow::DATA_CLASS_TENSOR);
  return TensorSummary(tag, text, metadata.SerializeAsString());
}

StatusOr<std::string> TensorSummary(absl::string_view tag, const Tensor& tensor,
                                    absl::string_view metadata) {
  tensorflow::Summary summary;
  tensorflow::Summary::Value* value = AddValue(tag, &summary);
  if (!value->mutable_metadata()->ParseFromArray(metadata.data(),
                                                 static_cast<int>(metadata.size()))) {
    return InvalidArgument("Summary metadata is malformed for: ", tag);
  }
  WEFT_RETURN_IF_ERROR(TensorToProto(tensor, value->mutable_tensor()));
  return summary.SerializeAsString();
}

StatusOr<std::string> NodeTensorSummary(absl::string_view node_name, const Tensor& tensor) {
  tensorflow::Summary summary;
  tensorflow::Summary::Value* value = summary.add_value();
  value->set_node_name(std::string(node_name));
  WEFT_RETURN_IF_ERROR(TensorToProto(tensor, value->mutable_tensor()));
  return summary.SerializeAsString();
}

std::string AudioSummary(absl::string_view tag, float sample_rate, int64_t channels, int64_t frames,
                         absl::string_view wav) {
  tensorflow::Summary summary;
  tensorflow::Summary::Audio* audio = AddValue(tag, &summary)->mutable_audio();
  audio->set_sample_rate(sample_rate);
  audio->set_num_channels(channels);
  audio->set_length_frames(frames);
  audio->set_encoded_audio_string(std::string(wav));
  audio->set_content_type("audio/wav");
  return summary.SerializeAsString();
}

std::string ImageSummary(absl::string_view tag, int height, int width, int channels,
                         absl::string_view png) {
  tensorflow::Summary summary;
  tensorflow::Summary::Image* image = AddValue(tag, &summary)->mutable_image();
  image->set_height(height);
  image->set_width(width);
  image->set_colorspace(channels);
  image->set_encoded_image_string(std::string(png));
  return summary.SerializeAsString();
}

StatusOr<std::string> MergeSummaries(absl::Span<const std::string> summaries) {
  tensorflow::Summary merged;
  for (const std::string& bytes : summaries) {
    tensorflow::Summary summary;
    if (!summary.ParseFromString(bytes)) {
      return InvalidArgument("Summary to merge is malformed: ", bytes.size(), " bytes");
    }
    merged.MergeFrom(summary);
  }
  std::set<absl::string_view> tags;
  for (const auto& value : merged.value()) {
    if (!value.tag().empty() && !tags.insert(value.tag()).second) {
      return InvalidArgument("Duplicate tag in merged summary: ", value.tag());
    }
  }
  return merged.SerializeAsString();
}

}  // namespace weft::storage
