// SPDX-License-Identifier: Apache-2.0
#include "weft/train/monitored_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/graph/import.h"

namespace weft::train {
namespace {

// A session whose calls together may take so long.
class TimedSession final : public session::Session {
 public:
  TimedSession(session::Session& inner, absl::Time end) : inner_(inner), end_(end) {}
  Status Extend(const GraphDef& graph) override { return inner_.Extend(graph); }
  Status Run(const session::RunOptions& options, const std::vector<session::Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, session::RunMetadata* metadata) override {
    session::RunOptions timed = options;
    timed.timeout = std::min(timed.timeout, std::max(end_ - absl::Now(), absl::Milliseconds(1)));
    return inner_.Run(timed, feeds, fetches, targets, results, metadata);
  }
  StatusOr<std::vector<DeviceAttributes>> ListDevices() override { return inner_.ListDevices(); }
  Status Close() override { return inner_.Close(); }

 private:
  session::Session& inner_;
  const absl::Time end_;
};

constexpr absl::Duration kBetweenWords = absl::Seconds(10);

}  // namespace

bool IsLostPeer(const Status& status) {
  return status.code() == absl::StatusCode::kAborted ||
         status.code() == absl::StatusCode::kUnavailable;
}

StatusOr<std::unique_ptr<MonitoredSession>> MonitoredSession::Create(
    Program& program, const MonitoredOptions& options) {
  if (!options.make_session) return InvalidArgument("A monitored session needs make_session");
  std::unique_ptr<MonitoredSession> session(new MonitoredSession(options));
  WEFT_RETURN_IF_ERROR(session->Finalize(program));
  WEFT_RETURN_IF_ERROR(session->Connect());
  return session;
}

StatusOr<std::unique_ptr<MonitoredSession>> MonitoredSession::CreateTraining(
    Program& program, const TrainingOptions& options) {
  MonitoredOptions monitored{.make_session = options.make_session,
                             .is_chief = options.is_chief,
                             .checkpoint_folder = options.checkpoint_folder,
                             .hooks = options.hooks,
                             .train = options.train,
                             .max_wait = options.max_wait,
                             .scaffold = options.scaffold,
                             .check_chief = options.check_chief,
                             .chief_grace = options.chief_grace,
                             .stop_grace = options.stop_grace};
  if (!monitored.make_session) return InvalidArgument("A monitored session needs make_session");
  program.GlobalStep();
  std::unique_ptr<Saver> saver;
  std::vector<std::unique_ptr<Hook>> hooks;
  const std::string& folder = options.checkpoint_folder;
  const std::string& summaries = options.summary_folder.empty() ? folder : options.summary_folder;
  const auto never = [](const Every& every) {
    return every.steps <= 0 && every.time == absl::InfiniteDuration();
  };
  if (!folder.empty()) {
    WEFT_ASSIGN_OR_RETURN(saver, Saver::Create(program, {.can_take = options.save_in_background}));
    monitored.saver = saver.get();
  }
  if (options.is_chief) {
    if (options.log_step_count_steps > 0) {
      hooks.push_back(
          CountSteps(summaries, Every::Steps(options.log_step_count_steps), options.clock));
    }
    if (!summaries.empty() && !never(options.save_summaries)) {
      hooks.push_back(WriteSummaries(summaries, options.save_summaries, options.clock));
    }
    if (saver != nullptr && !never(options.save_checkpoint)) {
      const auto save = options.save_in_background ? SaveCheckpointsInBackground : SaveCheckpoints;
      hooks.push_back(save(saver.get(), folder, options.save_checkpoint, options.clock));
    }
    for (const auto& hook : hooks) monitored.hooks.push_back(hook.get());
    monitored.hooks.insert(monitored.hooks.end(), options.chief_only_hooks.begin(),
                           options.chief_only_hooks.end());
  }
  std::unique_ptr<MonitoredSession> session(new MonitoredSession(monitored));
  session->own_saver_ = std::move(saver);
  session->own_hooks_ = std::move(hooks);
  WEFT_RETURN_IF_ERROR(session->Finalize(program));
  WEFT_RETURN_IF_ERROR(session->Connect());
  return session;
}

MonitoredSession::~MonitoredSession() { Disconnect(); }

void MonitoredSession::Disconnect() {
  if (session_ == nullptr) return;
  // Closing cancels what hooks still run on the session, then they let go of it.
  session_->Close().IgnoreError();
  for (Hook* hook : options_.hooks) hook->AfterClose();
  session_.reset();
}

Status MonitoredSession::Finalize(Program& program) {
  for (Hook* hook : options_.hooks) WEFT_RETURN_IF_ERROR(hook->Begin(program));
  step_name_ = NameOf(program.GlobalStep().value);
  if (options_.train != nullptr) {
    GraphBuilder builder(&program.graph());
    builder.set_device(program.GlobalStep().device);
    builder.set_control_inputs({options_.train});
    step_after_train_ = NameOf(builder.Op("ReadVariableOp", {program.GlobalStep().handle},
                                          {{"dtype", DType::kInt64}}, "global_step_after_train"));
    WEFT_RETURN_IF_ERROR(builder.status());
    train_ = options_.train->name();
  }
  std::vector<Variable> shared;
  std::vector<Variable> local;
  for (const Variable& variable : program.variables()) {
    (variable.local ? local : shared).push_back(variable);
  }
  const Scaffold& scaffold = options_.scaffold;
  Node* init = scaffold.init;
  if (init == nullptr) init = program.Group(program.InitializersInOrder(shared), "init_variables");
  std::vector<Node*> local_inits = program.InitializersInOrder(local);
  local_inits.insert(local_inits.end(), scaffold.local_init.begin(), scaffold.local_init.end());
  Node* local_init = program.Group(local_inits, "init_local_variables");
  const Endpoint missing = program.ReportUninitialized(/*local=*/false);
  if (!program.states().empty()) {
    Node* states = program.InitializeStates();
    if (states != nullptr) init_states_ = states->name();
  }
  WEFT_RETURN_IF_ERROR(program.status());
  init_ = init->name();
  local_init_ = local_init->name();
  missing_ = NameOf(missing);
  not_ready_ = scaffold.not_ready ? NameOf(scaffold.not_ready) : missing_;
  for (Node* node : options_.chief_init) chief_init_.push_back(node->name());
  for (Node* node : options_.chief_resume) chief_resume_.push_back(node->name());
  graph_ = ExportGraph(program.graph());
  return absl::OkStatus();
}

Status MonitoredSession::Connect() {
  const absl::Time give_up = absl::Now() + options_.max_wait;
  while (true) {
    const Status status = TryConnect();
    if (status.ok()) return status;
    const bool may_pass = IsLostPeer(status) ||
                          status.code() == absl::StatusCode::kDeadlineExceeded ||
                          absl::StrContains(status.message(), "uninitialized");
    if (!may_pass || absl::Now() > give_up) return status;
    WEFT_LOG(WARNING) << "Waiting for the cluster: " << status.message();
    absl::SleepFor(options_.poll);
  }
}

Status MonitoredSession::TryConnect() {
  Disconnect();
  WEFT_ASSIGN_OR_RETURN(session_, options_.make_session());
  WEFT_RETURN_IF_ERROR(session_->Extend(graph_));
  // Before anything is restored: what has not begun cannot go on elsewhere.
  if (!init_states_.empty()) WEFT_RETURN_IF_ERROR(session_->Run({}, {}, {init_states_}, nullptr));
  if (options_.is_chief) WEFT_RETURN_IF_ERROR(ReadyAsChief());
  if (!options_.is_chief || options_.scaffold.not_ready) {
    WEFT_RETURN_IF_ERROR(WaitUntilReady(options_.is_chief ? "The program" : "The chief"));
  }
  WEFT_RETURN_IF_ERROR(session_->Run({}, {}, {local_init_}, nullptr));
  WEFT_RETURN_IF_ERROR(ReadGlobalStep());
  for (Hook* hook : options_.hooks) {
    WEFT_RETURN_IF_ERROR(hook->AfterCreate(*session_, global_step_));
    // It may have given the variables other values.
    WEFT_RETURN_IF_ERROR(ReadGlobalStep());
    stop_ = stop_ || hook->Done(global_step_);
  }
  return absl::OkStatus();
}

Status MonitoredSession::ReadyAsChief() {
  std::vector<Tensor> missing;
  WEFT_RETURN_IF_ERROR(session_->Run({}, {missing_}, {}, &missing));
  const bool saves = options_.saver != nullptr && !options_.checkpoint_folder.empty();
  // Variables outlive a chief that was restarted: they are newer than any checkpoint.
  if (missing[0].num_elements() > 0) {
    StatusOr<std::string> restored = NotFound("no checkpoint folder");
    if (saves) restored = options_.saver->RestoreNewest(*session_, options_.checkpoint_folder);
    if (restored.ok()) {
      WEFT_LOG(INFO) << "Restored " << *restored;
    } else if (restored.status().code() != absl::StatusCode::kNotFound) {
      return restored.status();
    } else {
      WEFT_RETURN_IF_ERROR(InitializeAsChief());
    }
  } else if (saves && !init_states_.empty()) {
    // Its iterators went with it: they go on where the newest checkpoint saw them.
    const StatusOr<std::string> newest = options_.saver->Latest(options_.checkpoint_folder);
    if (newest.ok()) WEFT_RETURN_IF_ERROR(options_.saver->RestoreStates(*session_, *newest));
  }
  if (!chief_init_.empty()) WEFT_RETURN_IF_ERROR(session_->Run({}, {}, chief_init_, nullptr));
  if (missing[0].num_elements() > 0 || chief_resume_.empty()) return absl::OkStatus();
  return session_->Run({}, {}, chief_resume_, nullptr);
}

Status MonitoredSession::InitializeAsChief() {
  const Scaffold& scaffold = options_.scaffold;
  WEFT_RETURN_IF_ERROR(session_->Run(scaffold.init_feeds, {}, {init_}, nullptr));
  return scaffold.init_function ? scaffold.init_function(*session_) : absl::OkStatus();
}

Status MonitoredSession::WaitUntilReady(const std::string& who) {
  const absl::Time begin = absl::Now();
  absl::Time next_word = begin + kBetweenWords;
  absl::Time last_answer = begin;
  while (true) {
    std::vector<Tensor> missing;
    WEFT_RETURN_IF_ERROR(session_->Run({}, {not_ready_}, {}, &missing));
    if (missing[0].num_elements() == 0) return absl::OkStatus();
    const absl::Span<const std::string> all = missing[0].span<std::string>();
    const std::string names = absl::StrJoin(all.subspan(0, 5), ", ");
    const absl::Time now = absl::Now();
    if (now - begin > options_.max_wait) {
      return DeadlineExceeded(who, " has not initialized all variables; without a value: ", names);
    }
    if (now > next_word) {
      next_word = now + kBetweenWords;
      const Status chief =
          options_.check_chief && !options_.is_chief ? options_.check_chief() : absl::OkStatus();
      if (chief.ok()) last_answer = now;
      if (now - last_answer > options_.chief_grace) {
        return DeadlineExceeded("The chief does not answer (", chief.message(),
                                "), and nobody else initializes ", names);
      }
      WEFT_LOG(INFO) << "Waiting for the chief to initialize " << names
                     << (chief.ok() ? "" : absl::StrCat("; it does not answer: ", chief.message()));
    }
    absl::SleepFor(options_.poll);
  }
}

Status MonitoredSession::ReadGlobalStep() {
  std::vector<Tensor> step;
  WEFT_RETURN_IF_ERROR(session_->Run({}, {step_name_}, {}, &step));
  global_step_ = step[0].scalar<int64_t>();
  return absl::OkStatus();
}

Status MonitoredSession::RunPlain(const std::vector<session::Feed>& feeds,
                                  const std::vector<Endpoint>& fetches,
                                  const std::vector<Node*>& targets, std::vector<Tensor>* results) {
  std::vector<std::string> fetch_names;
  std::vector<std::string> target_names;
  for (const Endpoint& fetch : fetches) fetch_names.push_back(NameOf(fetch));
  for (const Node* node : targets) target_names.push_back(node->name());
  return session_->Run(feeds, fetch_names, target_names, results);
}

Status MonitoredSession::RunOnce(const std::vector<session::Feed>& feeds,
                                 const std::vector<Endpoint>& fetches,
                                 const std::vector<Node*>& targets, std::vector<Tensor>* results) {
  std::vector<std::string> names;
  std::vector<std::string> target_names;
  for (const Endpoint& fetch : fetches) names.push_back(NameOf(fetch));
  for (const Node* node : targets) target_names.push_back(node->name());
  std::vector<std::vector<size_t>> hook_values(options_.hooks.size());
  const auto place_of = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    names.push_back(name);
    return names.size() - 1;
  };
  for (size_t h = 0; h < options_.hooks.size(); ++h) {
    for (const std::string& name : options_.hooks[h]->Fetches())
      hook_values[h].push_back(place_of(name));
  }
  const bool trains =
      !train_.empty() && std::count(target_names.begin(), target_names.end(), train_) > 0;
  const size_t step_place = trains ? place_of(step_after_train_) : 0;
  std::vector<Tensor> values;
  session::RunOptions run;
  for (Hook* hook : options_.hooks) run.trace = hook->WantsTrace() || run.trace;
  session::RunMetadata metadata;
  session::RunMetadata* const traced = run.trace ? &metadata : nullptr;
  WEFT_RETURN_IF_ERROR(session_->Run(run, feeds, names, target_names, &values, traced));
  if (trains) {
    global_step_ = values[step_place].scalar<int64_t>();
  } else {
    WEFT_RETURN_IF_ERROR(ReadGlobalStep());
  }
  for (size_t h = 0; h < options_.hooks.size(); ++h) {
    std::vector<Tensor> own;
    for (size_t place : hook_values[h]) own.push_back(values[place]);
    WEFT_RETURN_IF_ERROR(options_.hooks[h]->AfterRun({.session = session_.get(),
                                                      .global_step = global_step_,
                                                      .values = &own,
                                                      .metadata = traced,
                                                      .stop = &stop_}));
  }
  values.resize(fetches.size());
  if (results != nullptr) *results = std::move(values);
  return absl::OkStatus();
}

Status MonitoredSession::Run(const std::vector<session::Feed>& feeds,
                             const std::vector<Endpoint>& fetches,
                             const std::vector<Node*>& targets, std::vector<Tensor>* results) {
  while (true) {
    const Status status = RunOnce(feeds, fetches, targets, results);
    const bool lost =
        IsLostPeer(status) || (status.code() == absl::StatusCode::kFailedPrecondition &&
                               absl::StrContains(status.message(), "uninitialized"));
    if (!lost) return status;
    WEFT_LOG(WARNING) << "A step failed and is run again in a new session: " << status.message();
    WEFT_RETURN_IF_ERROR(Connect());
    if (!stop_) continue;
    // Others trained on to the end meanwhile: what was asked for is computed, but trains no more.
    std::vector<Node*> rest;
    std::copy_if(targets.begin(), targets.end(), std::back_inserter(rest),
                 [&](const Node* target) { return target->name() != train_; });
    return RunPlain(feeds, fetches, rest, results);
  }
}

Status MonitoredSession::End() {
  Status first;
  TimedSession timed(*session_, absl::Now() + options_.stop_grace);
  for (Hook* hook : options_.hooks) {
    const Status status = hook->End(timed, global_step_);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace weft::train
