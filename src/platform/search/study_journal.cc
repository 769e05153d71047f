// SPDX-License-Identifier: Apache-2.0
#include "platform/search/study_journal.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace weft::platform {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr absl::Duration kSyncPeriod = absl::Milliseconds(200);

Status CheckHeader(const Json& header, const Json& found, const std::string& path) {
  for (const JsonMember& member : header.members()) {
    const Json* const other = found.Find(member.name);
    if (other != nullptr && *other == member.value) continue;
    return FailedPrecondition(path, " holds another study: its ", member.name, " is ",
                              other == nullptr ? "not there" : other->Dump(), ", not ",
                              member.value.Dump(),
                              ". Give --out another folder, or the same words as before.");
  }
  return absl::OkStatus();
}

// Of lines with the header first.
bool HasResult(const std::vector<Json>& lines) {
  return absl::c_any_of(lines, [](const Json& line) { return line.Find("objective") != nullptr; });
}

// One line after the header.
Status Replay(const Json& line, Study* study, std::map<int64_t, TrialMetrics>* metrics) {
  WEFT_ASSIGN_OR_RETURN(const Json* const number_json, line.At("trial"));
  WEFT_ASSIGN_OR_RETURN(const int64_t number, number_json->AsInt());
  if (const Json* const values = line.Find("values")) {
    if (number != static_cast<int64_t>(study->trials().size())) {
      return InvalidArgument("trial ", number, " stands where trial ", study->trials().size(),
                             " should");
    }
    std::vector<std::pair<std::string, std::string>> assignments;
    for (const JsonMember& member : values->members()) {
      WEFT_ASSIGN_OR_RETURN(std::string text, member.value.AsString());
      assignments.emplace_back(member.name, std::move(text));
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<double> numbers, study->space().ReadAssignments(assignments));
    int64_t parent = -1;
    if (const Json* const from = line.Find("parent")) {
      WEFT_ASSIGN_OR_RETURN(parent, from->AsInt());
    }
    return study->Replay(std::move(numbers), parent);
  }
  if (line.Find("failure") != nullptr) return study->Fail(number);
  WEFT_ASSIGN_OR_RETURN(const Json* const objective, line.At("objective"));
  WEFT_ASSIGN_OR_RETURN(const double value, objective->AsDouble());
  TrialResult result{{value}};
  if (const Json* const more = line.Find("more")) {
    for (const Json& item : more->items()) {
      WEFT_ASSIGN_OR_RETURN(const double further, item.AsDouble());
      result.objectives.push_back(further);
    }
  }
  if (const Json* const violation = line.Find("violation")) {
    WEFT_ASSIGN_OR_RETURN(result.violation, violation->AsDouble());
  }
  WEFT_RETURN_IF_ERROR(study->Tell(number, result));
  WEFT_ASSIGN_OR_RETURN(const Json* const all, line.At("metrics"));
  for (const JsonMember& member : all->members()) {
    WEFT_ASSIGN_OR_RETURN((*metrics)[number][member.name], member.value.AsDouble());
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<StudyJournal>> StudyJournal::Open(
    FileSystem& files, const std::string& path, const Json& header, Study* study,
    std::map<int64_t, TrialMetrics>* metrics) {
  std::string text;
  if (files.Stat(path).ok()) {
    WEFT_ASSIGN_OR_RETURN(text, ReadFile(files, path, kMostBytes));
  }
  // A process that was killed while it wrote leaves a part of a line.
  const size_t whole = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  const bool is_torn = whole < text.size();
  text.resize(whole);
  std::vector<Json> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    StatusOr<Json> json = Json::Parse(line);
    if (!json.ok()) return Annotate(json.status(), absl::StrCat(path, ":", lines.size() + 1));
    lines.push_back(*std::move(json));
  }
  const Status is_same = lines.empty() ? absl::OkStatus() : CheckHeader(header, lines[0], path);
  if (!is_same.ok()) {
    // Nothing is lost of a study whose program, say, could not be found.
    if (HasResult(lines)) return is_same;
    lines.clear();
    text.clear();
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    WEFT_RETURN_IF_ERROR(
        Annotate(Replay(lines[i], study, metrics), absl::StrCat(path, ":", i + 1)));
  }
  if (is_torn || !is_same.ok()) WEFT_RETURN_IF_ERROR(WriteFile(files, path, text));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                        files.OpenWrite(path, WriteMode::kAppend));
  std::unique_ptr<StudyJournal> journal(new StudyJournal(std::move(file)));
  if (lines.empty()) WEFT_RETURN_IF_ERROR(journal->Write(header));
  return journal;
}

Status StudyJournal::Write(const Json& line) {
  WEFT_RETURN_IF_ERROR(file_->Append(absl::StrCat(line.Dump(), "\n")));
  // What is written outlasts this process at once, and the machine soon.
  const absl::Time now = absl::Now();
  if (now - synced_ < kSyncPeriod) return absl::OkStatus();
  synced_ = now;
  return file_->Sync();
}

Status StudyJournal::Started(const SearchSpace& space, const SearchTrial& trial) {
  Json values = Json::MakeObject();
  for (const auto& [name, text] : space.Assign(trial.values)) values.Set(name, text);
  Json line = Json::MakeObject();
  line.Set("trial", trial.number);
  line.Set("values", std::move(values));
  if (trial.parent >= 0) line.Set("parent", trial.parent);
  return Write(line);
}

Status StudyJournal::Ended(const SearchTrial& trial, const TrialMetrics& metrics,
                           const std::string& failure) {
  Json line = Json::MakeObject();
  line.Set("trial", trial.number);
  if (!failure.empty()) {
    line.Set("failure", failure);
    return Write(line);
  }
  Json all = Json::MakeObject();
  for (const auto& [name, value] : metrics) all.Set(name, value);
  line.Set("objective", trial.objective);
  if (!trial.more_objectives.empty()) {
    Json more = Json::MakeArray();
    for (const double value : trial.more_objectives) more.Append(value);
    line.Set("more", std::move(more));
  }
  if (trial.violation > 0) line.Set("violation", trial.violation);
  line.Set("metrics", std::move(all));
  return Write(line);
}

}  // namespace weft::platform
