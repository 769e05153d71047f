// SPDX-License-Identifier: Apache-2.0
// Kinds of nodes that the three large clouds rent out. Sizes and networks as their pages give them;
// prices are on-demand ones of one American region in dollars an hour, rounded, and no more than a
// start: `weft plan --prices FILE` replaces them.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "base/nearest_name.h"
#include "platform/placement/cluster.h"

namespace weft::platform {
namespace {

constexpr int kMostOfShape = 4096;

const NodeShape kShapes[] = {
    // Amazon Web Services.
    {"m5.4xlarge", 16, 64 * kGibibyte, 0, "", 10, 0.77},
    {"c5.9xlarge", 36, 72 * kGibibyte, 0, "", 12, 1.53},
    {"c5.18xlarge", 72, 144 * kGibibyte, 0, "", 25, 3.06},
    {"g4dn.xlarge", 4, 16 * kGibibyte, 1, "T4", 10, 0.53},
    {"g4dn.12xlarge", 48, 192 * kGibibyte, 4, "T4", 50, 3.91},
    {"p3.2xlarge", 8, 61 * kGibibyte, 1, "V100", 10, 3.06},
    {"p3.8xlarge", 32, 244 * kGibibyte, 4, "V100", 10, 12.24},
    {"p3.16xlarge", 64, 488 * kGibibyte, 8, "V100", 25, 24.48},
    {"p4d.24xlarge", 96, 1152 * kGibibyte, 8, "A100", 400, 32.77},
    // Azure.
    {"Standard_D16s_v3", 16, 64 * kGibibyte, 0, "", 8, 0.77},
    {"Standard_F72s_v2", 72, 144 * kGibibyte, 0, "", 30, 3.05},
    {"Standard_NC4as_T4_v3", 4, 28 * kGibibyte, 1, "T4", 8, 0.53},
    {"Standard_NC6s_v3", 6, 112 * kGibibyte, 1, "V100", 8, 3.06},
    {"Standard_NC24s_v3", 24, 448 * kGibibyte, 4, "V100", 24, 12.24},
    {"Standard_ND96asr_v4", 96, 900 * kGibibyte, 8, "A100", 200, 27.20},
    // Google Cloud.
    {"n1-standard-16", 16, 60 * kGibibyte, 0, "", 32, 0.76},
    {"c2-standard-60", 60, 240 * kGibibyte, 0, "", 32, 3.13},
    {"n1-standard-8-t4", 8, 30 * kGibibyte, 1, "T4", 16, 0.73},
    {"n1-standard-8-v100", 8, 30 * kGibibyte, 1, "V100", 16, 2.86},
    {"a2-highgpu-1g", 12, 85 * kGibibyte, 1, "A100", 24, 3.67},
    {"a2-highgpu-8g", 96, 680 * kGibibyte, 8, "A100", 100, 29.39},
};

}  // namespace

std::vector<NodeShape> CloudShapes() { return {std::begin(kShapes), std::end(kShapes)}; }

StatusOr<NodeShape> FindCloudShape(absl::string_view name) {
  std::vector<std::string> names;
  for (const NodeShape& shape : kShapes) {
    if (shape.name == name) return shape;
    names.push_back(shape.name);
  }
  const std::string nearest = NearestName(std::string(name), names);
  return NotFound("There is no shape '", name, "'",
                  nearest.empty() ? "; `weft plan --shapes` lists them"
                                  : absl::StrCat(". Did you mean '", nearest, "'?"));
}

StatusOr<std::vector<NodeShape>> ParseShapes(absl::string_view text) {
  std::vector<NodeShape> nodes;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    word = absl::StripAsciiWhitespace(word);
    int count = 1;
    const size_t star = word.rfind('*');
    if (star != absl::string_view::npos) {
      if (!absl::SimpleAtoi(word.substr(star + 1), &count) || count < 1 || count > kMostOfShape) {
        return InvalidArgument("'", word, "': expected SHAPE*COUNT with a count from 1 to ",
                               kMostOfShape);
      }
      word = word.substr(0, star);
    }
    WEFT_ASSIGN_OR_RETURN(NodeShape shape, FindCloudShape(word));
    for (int i = 0; i < count; ++i) {
      nodes.push_back(shape);
      nodes.back().name = absl::StrCat(shape.name, "-", nodes.size() - 1);
    }
    if (nodes.size() > kMostOfShape) return InvalidArgument("More than ", kMostOfShape, " nodes");
  }
  return nodes;
}

}  // namespace weft::platform
