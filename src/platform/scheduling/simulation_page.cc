// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/simulation_page.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace weft::platform {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 300;
constexpr double kLeft = 60;
constexpr double kBottom = 34;
constexpr double kTop = 12;
constexpr const char* kColours[] = {"#4269d0", "#efb118", "#ff725c", "#6cc5b0",
                                    "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e"};

using Points = std::vector<std::pair<double, double>>;
struct Line {
  std::string name;
  Points points;
};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// "2.5 h": one figure after the point, in the unit that people would take.
std::string FormatTime(double seconds) {
  if (seconds < 100) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 6000) return absl::StrFormat("%.1f min", seconds / 60);
  if (seconds < 360000) return absl::StrFormat("%.1f h", seconds / 3600);
  return absl::StrFormat("%.1f d", seconds / 86400);
}

std::string FormatPart(double part) { return absl::StrFormat("%.1f%%", part * 100); }

// Lines over one pair of axes; x may be logarithmic, y is from 0 to 1.
std::string Plot(const std::string& title, const std::vector<Line>& lines, bool is_logarithmic,
                 const std::function<std::string(double)>& label) {
  double low = kForever;
  double high = -kForever;
  const auto scale = [&](double x) { return is_logarithmic ? std::log10(std::max(x, 1.0)) : x; };
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      low = std::min(low, scale(x));
      high = std::max(high, scale(x));
    }
  }
  if (!(high > low)) return "";
  const auto x_at = [&](double x) {
    return kLeft + (scale(x) - low) / (high - low) * (kWidth - kLeft - 10);
  };
  const auto y_at = [&](double y) {
    return kTop + (1 - std::clamp(y, 0.0, 1.0)) * (kHeight - kTop - kBottom);
  };
  std::string svg = absl::StrFormat(
      "<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">",
      Escape(title), kWidth, kHeight);
  for (const double y : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    absl::StrAppendFormat(&svg,
                          "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.0f%%</text>",
                          kLeft, kWidth - 10, y_at(y), y_at(y), kLeft - 6, y_at(y) + 4, y * 100);
  }
  for (int i = 0; i <= 4; ++i) {
    const double at = low + (high - low) * i / 4;
    const double x = is_logarithmic ? std::pow(10, at) : at;
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>", x_at(x),
                          kHeight - 12, i == 4 ? "end" : "middle", label(x));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> points;
    for (const auto& [x, y] : lines[i].points)
      points.push_back(absl::StrFormat("%.1f,%.1f", x_at(x), y_at(y)));
    absl::StrAppendFormat(
        &svg, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>",
        kColours[i % std::size(kColours)], absl::StrJoin(points, " "));
  }
  svg += "</svg><p class=\"legend\">";
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppendFormat(&svg, "<span style=\"color:%s\">&#9632;</span> %s &nbsp; ",
                          kColours[i % std::size(kColours)], Escape(lines[i].name));
  }
  return svg + "</p></figure>\n";
}

std::vector<std::vector<std::string>> Cells(const std::vector<SimulationResult>& results) {
  std::vector<std::vector<std::string>> rows = {{"policy", "jobs", "mean", "median", "p95",
                                                 "waiting", "makespan", "in use", "fragments",
                                                 "fairness", "displaced", "never ran", "events/s"}};
  for (const SimulationResult& each : results) {
    rows.push_back({each.policy, absl::StrCat(each.jobs), FormatTime(each.mean_completion),
                    FormatTime(each.median_completion), FormatTime(each.p95_completion),
                    FormatTime(each.mean_waiting), FormatTime(each.makespan),
                    FormatPart(each.utilisation), FormatPart(each.fragmentation),
                    absl::StrFormat("%.2f", each.fairness), absl::StrCat(each.displaced),
                    absl::StrCat(each.never_ran),
                    absl::StrFormat("%.2g", static_cast<double>(each.events) /
                                                std::max(each.wall_seconds, 1e-9))});
  }
  return rows;
}

std::vector<std::vector<std::string>> Cells(const std::vector<FillResult>& fills) {
  std::vector<std::vector<std::string>> rows = {{"policy", "unallocated GPUs", "found no room"}};
  for (const FillResult& each : fills)
    rows.push_back({each.policy, FormatPart(each.at_end), absl::StrCat(each.failed)});
  return rows;
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? absl::StrFormat("%-*s", static_cast<int>(widths[i]), row[i])
                     : absl::StrFormat("  %*s", static_cast<int>(widths[i]), row[i]);
    }
    text += "\n";
  }
  return text;
}

std::string HtmlTable(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table>";
  for (size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : rows[i])
      absl::StrAppend(&html, i == 0 ? "<th>" : "<td>", Escape(cell), i == 0 ? "</th>" : "</td>");
    html += "</tr>";
  }
  return html + "</table>\n";
}

Line Distribution(const SimulationResult& result) {
  Line line = {result.policy, {}};
  const size_t count = result.completions.size();
  const size_t step = count / 300 + 1;
  for (size_t i = 0; i < count; i += step) {
    line.points.emplace_back(result.completions[i],
                             static_cast<double>(i + 1) / static_cast<double>(count));
  }
  if (count > 0) line.points.emplace_back(result.completions.back(), 1);
  return line;
}

}  // namespace

std::string FormatResults(const std::vector<SimulationResult>& results) {
  return FormatTable(Cells(results));
}

std::string FormatFills(const std::vector<FillResult>& results, double load) {
  return absl::StrCat("After requests for ", absl::StrFormat("%.0f%%", load * 100),
                      " of all GPUs:\n", FormatTable(Cells(results)));
}

std::string MakeSimulationPage(const std::string& title,
                               const std::vector<SimulationResult>& results,
                               const std::vector<FillResult>& fills) {
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", Escape(title),
      "</title><style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
      "padding:0 1rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
      "td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}"
      "td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto}"
      "svg text{font-size:12px;fill:#555}.grid{stroke:#e4e4e4}figure{margin:2rem 0}"
      "figcaption{font-weight:600}.legend{margin:.2rem 0}</style></head><body>\n<h1>",
      Escape(title), "</h1>\n");
  if (!results.empty()) {
    page += HtmlTable(Cells(results));
    std::vector<Line> distributions;
    std::vector<Line> in_use;
    for (const SimulationResult& result : results) {
      distributions.push_back(Distribution(result));
      in_use.push_back({result.policy, result.in_use});
    }
    page += Plot("Jobs that are complete after this time from their submission", distributions,
                 true, FormatTime);
    page += Plot("Part of the cluster in use", in_use, false, FormatTime);
  }
  if (!fills.empty()) {
    page += HtmlTable(Cells(fills));
    std::vector<Line> lines;
    for (const FillResult& fill : fills) lines.push_back({fill.policy, fill.unallocated});
    page += Plot("GPUs that are unallocated after requests for this part of them", lines, false,
                 FormatPart);
  }
  return page + "</body></html>\n";
}

}  // namespace weft::platform
