// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "net/yaml.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostGpusOfJob = 100000;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr size_t kMostRows = 5000000;
constexpr int64_t kMostNodes = 200000;
constexpr int kPodSlotsOfNode = 1 << 20;  // traces do not bound them

// Lines of fields with commas between, the first of which names them. No quotes.
class Table {
 public:
  static StatusOr<Table> Parse(const std::string& text, const std::string& file) {
    Table table;
    table.file_ = file;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      line = absl::StripAsciiWhitespace(line);
      ++table.line_;
      if (line.empty()) continue;
      std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
      for (absl::string_view& field : fields) field = absl::StripAsciiWhitespace(field);
      if (table.columns_.empty()) {
        for (size_t i = 0; i < fields.size(); ++i) table.columns_.emplace(fields[i], i);
        table.width_ = fields.size();
        continue;
      }
      if (fields.size() != table.width_) {
        return InvalidArgument(file, ":", table.line_, ": has ", fields.size(),
                               " fields, the first line names ", table.width_);
      }
      if (table.rows_.size() >= kMostRows)
        return InvalidArgument(file, ": more than ", kMostRows, " lines");
      table.rows_.push_back({table.line_, std::move(fields)});
    }
    if (table.columns_.empty()) return InvalidArgument(file, ": is empty, a table is needed");
    return table;
  }

  bool Has(absl::string_view column) const { return columns_.count(column) != 0; }
  size_t size() const { return rows_.size(); }
  // "" where there is no such column.
  std::string Text(size_t row, std::initializer_list<absl::string_view> names) const {
    for (absl::string_view name : names) {
      const auto column = columns_.find(name);
      if (column != columns_.end()) return std::string(rows_[row].fields[column->second]);
    }
    return "";
  }
  StatusOr<double> Number(size_t row, absl::string_view name, double missing) const {
    const auto column = columns_.find(name);
    if (column == columns_.end()) return missing;
    const absl::string_view field = rows_[row].fields[column->second];
    if (field.empty()) return missing;
    double value = 0;
    if (!absl::SimpleAtod(field, &value) || !std::isfinite(value) || value < 0 || value > 1e15) {
      return InvalidArgument(file_, ":", rows_[row].line, ": ", name, " holds '", field,
                             "', a number from 0 to 1e15 is allowed");
    }
    return value;
  }
  const std::string& file() const { return file_; }
  int line(size_t row) const { return rows_[row].line; }

 private:
  struct Row {
    int line = 0;
    std::vector<absl::string_view> fields;
  };
  std::string file_;
  std::map<absl::string_view, size_t> columns_;
  size_t width_ = 0;
  std::vector<Row> rows_;
  int line_ = 0;
};

// The same object for the same needs.
class NeedsPool {
 public:
  std::shared_ptr<const PodNeeds> Get(int64_t cpu, int64_t memory, const GpuNeeds& gpu) {
    auto& known = known_[{cpu, memory, gpu.count, gpu.thousandths, gpu.models}];
    if (known == nullptr) {
      PodNeeds needs;
      needs.amounts = Amounts({cpu, memory, 1});
      needs.gpu = gpu;
      known = std::make_shared<const PodNeeds>(std::move(needs));
    }
    return known;
  }

 private:
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, std::vector<std::string>>,
           std::shared_ptr<const PodNeeds>>
      known_;
};

StatusOr<TraceJob> ReadJob(const Table& table, size_t row, NeedsPool* pool) {
  TraceJob job;
  job.name = table.Text(row, {"name", "job_id"});
  job.queue = table.Text(row, {"queue", "user"});
  for (const char* column : {"submit_time", "creation_time", "time"}) {
    if (!table.Has(column)) continue;
    WEFT_ASSIGN_OR_RETURN(job.submitted, table.Number(row, column, 0));
    break;
  }
  WEFT_ASSIGN_OR_RETURN(const double deleted, table.Number(row, "deletion_time", job.submitted));
  WEFT_ASSIGN_OR_RETURN(const double begun, table.Number(row, "scheduled_time", job.submitted));
  WEFT_ASSIGN_OR_RETURN(job.duration,
                        table.Number(row, "duration", std::max(deleted - begun, 0.0)));
  WEFT_ASSIGN_OR_RETURN(const double gpus, table.Number(row, "num_gpu", 0));
  WEFT_ASSIGN_OR_RETURN(const double part, table.Number(row, "gpu_milli", 1000));
  WEFT_ASSIGN_OR_RETURN(const double cpu, table.Number(row, "cpu_milli", 0));
  WEFT_ASSIGN_OR_RETURN(const double memory, table.Number(row, "memory_mib", 0));
  if (gpus > kMostGpusOfJob) {
    return InvalidArgument(table.file(), ":", table.line(row), ": num_gpu holds '",
                           table.Text(row, {"num_gpu"}), "', at most ", kMostGpusOfJob,
                           " is allowed");
  }
  GpuNeeds gpu;
  for (absl::string_view model :
       absl::StrSplit(table.Text(row, {"gpu_spec", "gpu_model"}), '|', absl::SkipWhitespace()))
    gpu.models.emplace_back(model);
  if (table.Has("gpu_milli")) {
    gpu.count = static_cast<int64_t>(gpus);
    if (gpu.count == 1 && part > 0 && part < 1000) gpu.thousandths = static_cast<int64_t>(part);
  } else {
    gpu.count = gpus > 0 ? 1 : 0;
    job.pods = std::max(static_cast<int>(gpus), 1);
  }
  job.needs = pool->Get(static_cast<int64_t>(cpu), static_cast<int64_t>(memory) * kMiB, gpu);
  return job;
}

NodeDescription MakeNode(std::string name, int64_t cpu, int64_t memory, int64_t gpus,
                         const std::string& model) {
  NodeDescription node;
  node.name = std::move(name);
  node.allocatable = Amounts({cpu, memory, kPodSlotsOfNode});
  Gpu gpu;
  gpu.model = model;
  node.gpus.assign(static_cast<size_t>(gpus), gpu);
  return node;
}

StatusOr<int64_t> WholeNumber(const Table& table, size_t row, const char* name, int64_t most) {
  WEFT_ASSIGN_OR_RETURN(const double value, table.Number(row, name, 0));
  if (value > static_cast<double>(most))
    return InvalidArgument(table.file(), ":", table.line(row), ": ", name, " holds '",
                           table.Text(row, {name}), "', at most ", most, " is allowed");
  return static_cast<int64_t>(value);
}

StatusOr<std::vector<NodeDescription>> ReadKindOfCluster(const Table& table) {
  std::vector<NodeDescription> nodes;
  for (size_t row = 0; row < table.size(); ++row) {
    WEFT_ASSIGN_OR_RETURN(const int64_t racks, WholeNumber(table, row, "num_switch", kMostNodes));
    WEFT_ASSIGN_OR_RETURN(const int64_t per_rack,
                          WholeNumber(table, row, "num_node_p_switch", kMostNodes));
    WEFT_ASSIGN_OR_RETURN(const int64_t gpus, WholeNumber(table, row, "num_gpu_p_node", kMostGpus));
    WEFT_ASSIGN_OR_RETURN(const int64_t cpus, WholeNumber(table, row, "num_cpu_p_node", 1 << 20));
    WEFT_ASSIGN_OR_RETURN(const int64_t memory, WholeNumber(table, row, "mem_p_node", 1 << 20));
    if (racks * per_rack > kMostNodes)
      return InvalidArgument(table.file(), ": more than ", kMostNodes, " nodes");
    for (int64_t i = 0; i < racks * per_rack; ++i) {
      NodeDescription node =
          MakeNode(absl::StrCat("node-", nodes.size()), cpus * 1000, memory * kGiB, gpus, "");
      node.labels["topology.kubernetes.io/rack"] = absl::StrCat(i / per_rack);
      nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

}  // namespace

std::vector<NodeDescription> MakeNodes(int count, int gpus, int64_t cpu_thousandths,
                                       int64_t memory) {
  std::vector<NodeDescription> nodes;
  for (int i = 0; i < count; ++i)
    nodes.push_back(MakeNode(absl::StrCat("node-", i), cpu_thousandths, memory, gpus, ""));
  return nodes;
}

StatusOr<std::vector<TraceJob>> ParseTrace(const std::string& text, const std::string& file) {
  WEFT_ASSIGN_OR_RETURN(const Table table, Table::Parse(text, file));
  if (!table.Has("duration") && !table.Has("deletion_time") && !table.Has("num_gpu")) {
    return InvalidArgument(file,
                           ": the first line names neither duration nor deletion_time nor num_gpu: "
                           "a table of jobs is needed");
  }
  std::vector<TraceJob> jobs;
  NeedsPool pool;
  for (size_t row = 0; row < table.size(); ++row) {
    WEFT_ASSIGN_OR_RETURN(TraceJob job, ReadJob(table, row, &pool));
    jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submitted < b.submitted; });
  return jobs;
}

StatusOr<std::vector<NodeDescription>> ParseNodes(const std::string& text,
                                                  const std::string& file) {
  std::vector<NodeDescription> nodes;
  if (absl::EndsWith(file, ".csv")) {
    WEFT_ASSIGN_OR_RETURN(const Table table, Table::Parse(text, file));
    if (table.Has("num_node_p_switch")) return ReadKindOfCluster(table);
    if (!table.Has("cpu_milli"))
      return InvalidArgument(file,
                             ": the first line names no cpu_milli: a table of nodes is needed");
    for (size_t row = 0; row < table.size(); ++row) {
      WEFT_ASSIGN_OR_RETURN(const double cpu, table.Number(row, "cpu_milli", 0));
      WEFT_ASSIGN_OR_RETURN(const double memory, table.Number(row, "memory_mib", 0));
      WEFT_ASSIGN_OR_RETURN(const int64_t gpus, WholeNumber(table, row, "gpu", kMostGpus));
      nodes.push_back(MakeNode(table.Text(row, {"sn", "name"}), static_cast<int64_t>(cpu),
                               static_cast<int64_t>(memory) * kMiB, gpus,
                               table.Text(row, {"model"})));
    }
    return nodes;
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Json> documents, ParseYamlOrJson(text, file));
  ResourceNames names;
  for (const Json& document : documents) {
    const Json* const items = document.Find("items");
    const Json::Array alone = {document};
    for (const Json& node : items != nullptr ? items->items() : alone) {
      StatusOr<NodeDescription> description = ReadNode(node, &names);
      if (!description.ok()) return Annotate(description.status(), file);
      if (AmountOf(description->allocatable, kPodSlots) == 0)
        SetAmount(&description->allocatable, kPodSlots, kPodSlotsOfNode);
      nodes.push_back(*std::move(description));
    }
  }
  return nodes;
}

}  // namespace weft::platform
