// SPDX-License-Identifier: Apache-2.0
#include "apps/tune_experiment.h"

#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "net/yaml.h"
#include "platform/object/experiment.h"
#include "platform/object/fields.h"
#include "platform/object/trial_template.h"
#include "platform/search/early_stopping.h"
#include "platform/search/metric_reader.h"

namespace weft::apps {
namespace {

constexpr uint64_t kMostBytes = 4 << 20;

StatusOr<std::string> OwnPath() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return Unavailable("/proc/self/exe says nothing");
  return std::string(path, static_cast<size_t>(length));
}

StatusOr<Json> ReadExperimentObject(const std::string& file) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, file, kMostBytes));
  WEFT_ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYamlOrJson(text, file));
  for (Json& document : documents) {
    if (platform::StringField(document, {"kind"}) == "Experiment") return std::move(document);
  }
  return InvalidArgument(file, " holds no object of the kind Experiment");
}

// The container that counts, as a program of this machine.
StatusOr<platform::TrialProgram> ProgramOf(Json run, const std::string& container_name) {
  const std::string kind = platform::StringField(run, {"kind"});
  for (Json* const pod_template : platform::PodTemplatesOf(&run)) {
    const Json* const container = platform::PrimaryContainer(pod_template, container_name);
    if (container == nullptr) continue;
    platform::TrialProgram program;
    for (const char* field : {"command", "args"}) {
      for (const Json& word : platform::ListField(*container, {field}))
        program.argv.push_back(word.AsString().value_or(""));
    }
    if (platform::ListField(*container, {"command"}).empty()) {
      return InvalidArgument("container '", platform::StringField(*container, {"name"}),
                             "' has no command: there is no image here to say what to run");
    }
    for (const Json& variable : platform::ListField(*container, {"env"})) {
      program.variables.emplace_back(platform::StringField(variable, {"name"}),
                                     platform::StringField(variable, {"value"}));
    }
    program.working_directory = platform::StringField(*container, {"workingDir"});
    return program;
  }
  return InvalidArgument("the trial template, a ", kind, ", has no container '", container_name,
                         "': spec.trialTemplate.primaryContainerName says which one counts");
}

// A job of several tasks, in a file of its own.
StatusOr<platform::TrialProgram> JobProgram(const Json& run, const std::string& path) {
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(WriteFile(files, path, DumpYaml(run)));
  WEFT_ASSIGN_OR_RETURN(const std::string weft, OwnPath());
  return platform::TrialProgram{{weft, "run", path}};
}

Json HeaderOf(const Json& object) {
  Json spec = *object.Find("spec");
  // These may change from run to run.
  for (const char* field :
       {"parallelTrialCount", "maxTrialCount", "maxFailedTrialCount", "maxSeconds", "resumePolicy"})
    spec.Erase(field);
  if (Json* const objective = spec.FindMutable("objective")) objective->Erase("goal");
  Json header;
  header.Set("experiment", platform::NameOf(object));
  header.Set("spec", std::move(spec));
  return header;
}

}  // namespace

StatusOr<LocalExperiment> ReadLocalExperiment(const std::string& file, const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const Json object, ReadExperimentObject(file));
  platform::Problems problems(file);
  // Shared with the function that makes programs.
  const auto experiment =
      std::make_shared<platform::Experiment>(platform::ParseExperiment(object, &problems));
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
  if (!experiment->trial_template.config_map.empty()) {
    return InvalidArgument(file,
                           ": the trial template stands in a config map, which only a control "
                           "plane has: write it into the file, as trialSpec");
  }
  WEFT_RETURN_IF_ERROR(platform::CheckFilters(experiment->collector.filters));
  if (experiment->early_stopping.has_value())
    WEFT_RETURN_IF_ERROR(platform::CheckEarlyStopping(*experiment->early_stopping));
  LocalExperiment local;
  WEFT_ASSIGN_OR_RETURN(local.space, platform::SpaceOf(*experiment));
  WEFT_ASSIGN_OR_RETURN(local.study, platform::StudyOptionsOf(*experiment));
  platform::LocalTrialsOptions& trials = local.trials;
  trials.objective = experiment->objective;
  trials.collector = experiment->collector;
  trials.early_stopping = experiment->early_stopping;
  trials.parallel = experiment->parallel_trials;
  trials.trials = experiment->max_trials.value_or(INT64_MAX);
  // Katib's count ends the search, ours is the most that it bears.
  trials.most_failed = experiment->max_failed.has_value()
                           ? std::max<int64_t>(*experiment->max_failed, 1) - 1
                           : INT64_MAX;
  trials.search_limit = experiment->longest_run.value_or(absl::InfiniteDuration());
  local.header = HeaderOf(object);
  trials.make_program =
      [experiment, folder, space = local.space](
          const platform::SearchTrial& trial) -> StatusOr<platform::TrialProgram> {
    const std::string name = absl::StrCat("trial-", trial.number);
    WEFT_ASSIGN_OR_RETURN(Json run, platform::MakeRunObject(experiment->trial_template, "",
                                                            {experiment->name, name, "default"},
                                                            space.Assign(trial.values)));
    const std::string& container = experiment->trial_template.primary_container;
    WEFT_RETURN_IF_ERROR(platform::PrintFilesAtEnd(experiment->collector, container, &run));
    const std::string kind = platform::StringField(run, {"kind"});
    const bool is_job = kind == "TFJob" || kind == "Tensorflow";
    StatusOr<platform::TrialProgram> program =
        is_job ? JobProgram(run, absl::StrCat(folder, "/", name, ".yaml"))
               : ProgramOf(std::move(run), container);
    if (program.ok()) program->variables.emplace_back("KATIB_TRIAL_NAME", name);
    return program;
  };
  return local;
}

}  // namespace weft::apps
