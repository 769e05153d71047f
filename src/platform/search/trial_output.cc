// SPDX-License-Identifier: Apache-2.0
#include "platform/search/trial_output.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "platform/object/trial_template.h"
#include "platform/search/event_scalars.h"
#include "platform/search/metric_reader.h"

namespace weft::platform {
namespace {

// The files of events that PrintFilesAtEnd has printed, an empty line after each.
MetricSeries ReadEventFiles(absl::string_view printed, const std::vector<std::string>& names) {
  MetricSeries series;
  for (const absl::string_view text : absl::StrSplit(printed, "\n\n", absl::SkipWhitespace())) {
    std::string file;
    if (!absl::Base64Unescape(absl::StrReplaceAll(text, {{"\n", ""}, {"\r", ""}}), &file)) continue;
    for (const EventScalar& scalar : ReadEventScalars(file)) {
      for (const std::string& name : names) {
        // Katib names one of a subfolder `train/accuracy`.
        if (scalar.tag == name || absl::EndsWith(name, "/" + scalar.tag))
          series[name].push_back(scalar.value);
      }
    }
  }
  return series;
}

}  // namespace

MetricSeries ReadOutput(const MetricsCollector& collector, const std::vector<std::string>& names,
                        absl::string_view output) {
  if (collector.kind == MetricsCollector::Kind::kTensorFlowEvent)
    return ReadEventFiles(PrintedFiles(output), names);
  MetricReader reader(names, {.is_json = collector.is_json, .filters = collector.filters});
  reader.Read(collector.kind == MetricsCollector::Kind::kFile ? PrintedFiles(output) : output);
  reader.Finish();
  return reader.values();
}

}  // namespace weft::platform
