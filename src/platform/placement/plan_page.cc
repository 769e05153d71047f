// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/plan_page.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace weft::platform {
namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 150;
constexpr double kRow = 22;
// A page with more marks than this is slow to open: the longest are drawn.
constexpr size_t kMostMarks = 4000;
constexpr const char* kColours[] = {"#4269d0", "#efb118", "#ff725c", "#6cc5b0",
                                    "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e"};

// Pictures keep a size that can be read: on a narrow screen they are scrolled, not shrunk.
constexpr char kStyle[] =
    ":root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--dim:#555;--line:#ddd;--way:#0006}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--dim:#aaa;"
    "--line:#3a3a3a;--way:#fff8}}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;"
    "color:var(--ink);background:var(--paper)}"
    "h1{overflow-wrap:anywhere}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px}"
    "svg{width:100%;min-width:44rem;height:auto;display:block}svg text{font-size:11px;"
    "fill:var(--dim)}.edge{stroke:var(--line)}.way{stroke:var(--way);stroke-width:.6}"
    "figure{margin:2rem 0}.picture{overflow-x:auto}figcaption{font-weight:600}"
    ".legend{margin:.2rem 0}.entry{display:inline-block;margin-right:1em}";

std::string EscapeMarkup(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

const char* ColourOf(size_t number) { return kColours[number % std::size(kColours)]; }

// Devices that do something, in their order; to their rows.
std::map<int, int> RowsOf(const DistributionPlan& plan) {
  std::set<int> used(plan.assignment.begin(), plan.assignment.end());
  std::map<int, int> rows;
  for (const int device : used) rows.emplace(device, static_cast<int>(rows.size()));
  return rows;
}

template <typename Slice>
std::vector<Slice> LongestOf(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.end - a.start > b.end - b.start;
  });
  if (slices.size() > kMostMarks) slices.resize(kMostMarks);
  return slices;
}

constexpr char kOthers[] = "#bbb";

// Ops that take the most time of all devices together have colours, the first first.
std::vector<std::string> ColouredOps(const DistributionPlan& plan) {
  std::map<std::string, double> seconds;
  for (const StepSlice& slice : plan.simulated.ops)
    seconds[plan.problem->graph().ops[slice.op].op] += slice.end - slice.start;
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [op, time] : seconds) order.emplace_back(-time, op);
  std::sort(order.begin(), order.end());
  std::vector<std::string> ops;
  for (size_t i = 0; i < std::min(order.size(), std::size(kColours)); ++i)
    ops.push_back(order[i].second);
  return ops;
}

std::string LegendEntry(const char* colour, const char* sign, const std::string& name) {
  return absl::StrFormat("<span class=\"entry\"><span style=\"color:%s\">%s</span> %s</span> ",
                         colour, sign, EscapeMarkup(name));
}

std::string Timeline(const DistributionPlan& plan, const Cluster& cluster) {
  const std::map<int, int> rows = RowsOf(plan);
  const std::vector<std::string> coloured = ColouredOps(plan);
  const auto colour_of = [&](const std::string& op) {
    const auto found = std::find(coloured.begin(), coloured.end(), op);
    return found == coloured.end() ? kOthers : ColourOf(found - coloured.begin());
  };
  const double height = kRow * static_cast<double>(rows.size()) + 40;
  const double whole = std::max(plan.simulated.seconds, 1e-12);
  const auto x_at = [&](double seconds) { return kLeft + seconds / whole * (kWidth - kLeft - 10); };
  const auto y_at = [&](int device) { return 8 + kRow * rows.at(device); };
  std::string svg = absl::StrFormat(
      "<figure><figcaption>One step: what each device computes, and tensors between them"
      "</figcaption><div class=\"picture\" tabindex=\"0\" role=\"group\" aria-label=\"Timeline\">"
      "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Timeline of a step\">",
      kWidth, height);
  for (const auto& [device, row] : rows) {
    absl::StrAppendFormat(&svg, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                          kLeft - 8, 8 + kRow * row + 14,
                          EscapeMarkup(cluster.devices[device].name));
  }
  for (const StepSlice& slice : LongestOf(plan.simulated.ops)) {
    const StepOp& op = plan.problem->graph().ops[slice.op];
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\">"
                          "<title>%s (%s), %.3f ms</title></rect>",
                          x_at(slice.start), y_at(slice.device),
                          std::max(x_at(slice.end) - x_at(slice.start), 0.3), kRow - 6,
                          colour_of(op.op), EscapeMarkup(op.name), EscapeMarkup(op.op),
                          (slice.end - slice.start) * 1e3);
  }
  for (const TransferSlice& slice : LongestOf(plan.simulated.transfers)) {
    if (!rows.contains(slice.from) || !rows.contains(slice.to)) continue;
    absl::StrAppendFormat(&svg,
                          "<line class=\"way\" x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\"/>",
                          x_at(slice.start), y_at(slice.from) + kRow / 2 - 3, x_at(slice.end),
                          y_at(slice.to) + kRow / 2 - 3);
  }
  for (int i = 0; i <= 4; ++i) {
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">%.3f ms</text>",
                          x_at(whole * i / 4), height - 8, i == 4 ? "end" : "middle",
                          whole * i / 4 * 1e3);
  }
  svg += "</svg></div><p class=\"legend\">";
  for (size_t i = 0; i < coloured.size(); ++i)
    svg += LegendEntry(ColourOf(i), "&#9632;", coloured[i]);
  return svg + LegendEntry(kOthers, "&#9632;", "other ops") + "</p></figure>\n";
}

// Ops from left to right by how far they are from the inputs, in the colour of their device.
std::string GraphPicture(const DistributionPlan& plan, const Cluster& cluster) {
  const StepGraph& graph = plan.problem->graph();
  const std::map<int, int> rows = RowsOf(plan);
  std::vector<int> level(graph.ops.size(), 0);
  std::vector<int> place(graph.ops.size(), 0);
  std::map<int, int> of_level;
  int deepest = 1;
  int widest = 1;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    for (const int tensor : graph.ops[op].inputs)
      level[op] = std::max(level[op], level[graph.tensors[tensor].producer] + 1);
    place[op] = of_level[level[op]]++;
    deepest = std::max(deepest, level[op]);
    widest = std::max(widest, of_level[level[op]]);
  }
  const double height = std::clamp(widest * 9.0, 60.0, 500.0) + 20;
  const auto x_of = [&](int op) { return 12 + (kWidth - 24) * level[op] / deepest; };
  const auto y_of = [&](int op) {
    return 10 + (height - 20) * (place[op] + 0.5) / of_level.at(level[op]);
  };
  std::string svg = absl::StrFormat(
      "<figure><figcaption>The graph by device</figcaption><div class=\"picture\" tabindex=\"0\" "
      "role=\"group\" aria-label=\"Graph\"><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
      "aria-label=\"Ops and tensors by device\">",
      kWidth, height);
  size_t drawn = 0;
  for (const StepTensor& tensor : graph.tensors) {
    for (const int consumer : tensor.consumers) {
      if (++drawn > kMostMarks) break;
      absl::StrAppendFormat(
          &svg, "<line class=\"edge\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
          x_of(tensor.producer), y_of(tensor.producer), x_of(consumer), y_of(consumer));
    }
  }
  for (int op = 0; op < std::min<int>(graph.num_ops(), kMostMarks); ++op) {
    const int device = plan.assignment[plan.problem->unit_of(op)];
    absl::StrAppendFormat(&svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s on %s"
                          "</title></circle>",
                          x_of(op), y_of(op), ColourOf(rows.at(device)),
                          EscapeMarkup(graph.ops[op].name),
                          EscapeMarkup(cluster.devices[device].name));
  }
  svg += "</svg></div><p class=\"legend\">";
  for (const auto& [device, row] : rows) {
    svg += LegendEntry(ColourOf(row), "&#9679;", cluster.devices[device].name);
  }
  return svg + "</p></figure>\n";
}

// Workers from left to right, a line for each count of servers and one for all-reduce.
std::string GrowthChart(const DistributionPlan& plan) {
  std::map<std::string, std::vector<std::pair<double, double>>> lines;
  const bool has_examples = plan.batch > 0;
  std::set<double> counts;
  double most_workers = 1;
  double most_rate = 0;
  for (const PlanChoice& each : plan.tried) {
    if (!each.misfit.empty() || each.form == Form::kSplit || each.form == Form::kSingle) continue;
    const auto workers = static_cast<double>(each.workers.size());
    const double rate =
        has_examples ? each.examples_per_second : workers / std::max(each.seconds, 1e-12);
    const std::string name =
        each.form == Form::kAllReduce
            ? "all-reduce"
            : absl::StrCat(each.servers.size(), each.servers.size() == 1 ? " server" : " servers");
    lines[name].emplace_back(workers, rate);
    counts.insert(workers);
    most_workers = std::max(most_workers, workers);
    most_rate = std::max(most_rate, rate);
  }
  if (most_workers < 2) return "";
  constexpr double kHeight = 300;
  std::string svg = absl::StrFormat(
      "<figure><figcaption>%s a second, by workers and servers</figcaption>"
      "<div class=\"picture\" tabindex=\"0\" role=\"group\" aria-label=\"Growth\"><svg viewBox=\"0 "
      "0 "
      "%.0f %.0f\" role=\"img\" aria-label=\"Throughput against workers\">",
      has_examples ? "Examples" : "Workers' steps", kWidth, kHeight);
  const auto x_at = [&](double workers) {
    return 60 + (workers - 1) / (most_workers - 1) * (kWidth - 80);
  };
  const auto y_at = [&](double rate) { return 10 + (1 - rate / most_rate) * (kHeight - 50); };
  for (const double part : {0.0, 0.5, 1.0}) {
    absl::StrAppendFormat(&svg,
                          "<line class=\"edge\" x1=\"60\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"54\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>",
                          kWidth - 20, y_at(part * most_rate), y_at(part * most_rate),
                          y_at(part * most_rate) + 4, part * most_rate);
  }
  size_t number = 0;
  std::string legend;
  for (const auto& [name, points] : lines) {
    std::string path;
    for (const auto& [workers, rate] : points)
      absl::StrAppendFormat(&path, "%.1f,%.1f ", x_at(workers), y_at(rate));
    absl::StrAppendFormat(
        &svg, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>",
        ColourOf(number), path);
    legend += LegendEntry(ColourOf(number++), "&#9632;", name);
  }
  for (const double workers : counts) {
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.0f</text>",
                          x_at(workers), kHeight - 18, workers);
  }
  absl::StrAppendFormat(
      &svg, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">workers</text></svg></div>",
      kWidth - 20, kHeight - 4);
  return absl::StrCat(svg, "<p class=\"legend\">", legend, "</p></figure>\n");
}

}  // namespace

std::string MakePlanPage(const DistributionPlan& plan, const Cluster& cluster) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
      EscapeMarkup(plan.step),
      "</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<style>",
      kStyle, "</style></head><body>\n<h1>", EscapeMarkup(plan.step), "</h1>\n<pre>",
      EscapeMarkup(FormatPlan(plan, cluster, /*explain=*/true)), "</pre>\n",
      Timeline(plan, cluster), GraphPicture(plan, cluster), GrowthChart(plan), "</body></html>\n");
}

}  // namespace weft::platform
