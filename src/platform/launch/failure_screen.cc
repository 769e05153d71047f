// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/failure_screen.h"

#include <algorithm>

#include <signal.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "base/files.h"
#include "net/utf8.h"

namespace weft::platform {
namespace {

constexpr size_t kMostColumns = 200;
constexpr size_t kMostTasks = 12;
constexpr size_t kMostLines = 20;
constexpr int kMostFrames = 2;  // of one stack

std::string Shorten(const std::string& line) {
  if (line.size() <= kMostColumns) return line;
  return absl::StrCat(CutUtf8(line, kMostColumns - 3), "...");
}

std::string DescribeTask(const TaskState& state) {
  std::string text;
  switch (state.phase) {
    case TaskPhase::kWaiting:
      text = "not started";
      break;
    case TaskPhase::kRunning:
      text = "left running";
      break;
    case TaskPhase::kSucceeded:
      text = "ended with exit code 0";
      break;
    case TaskPhase::kFailed:
      text = "FAILED: ";
      text += state.last_exit.has_value() ? DescribeExit(*state.last_exit) : "could not be started";
      break;
    case TaskPhase::kStopped:
      text = state.has_started ? "ended by weft" : "not started";
      break;
  }
  if (state.restarts > 0) absl::StrAppend(&text, ", started again ", state.restarts, " times");
  return text;
}

std::string TaskTable(const LocalJob& job, const JobOutcome& outcome) {
  size_t width = 0;
  for (const LocalTask& task : job.tasks) width = std::max(width, task.name.size());
  std::string text;
  for (size_t i = 0; i < job.tasks.size() && i < kMostTasks; ++i) {
    absl::StrAppendFormat(&text, "  %-*s  %s\n", static_cast<int>(width), job.tasks[i].name,
                          DescribeTask(outcome.tasks[i]));
  }
  if (job.tasks.size() > kMostTasks) {
    absl::StrAppend(&text, "  ... and ", job.tasks.size() - kMostTasks, " more\n");
  }
  return text;
}

size_t Indent(absl::string_view line) {
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

// `  File "train.py", line 3, in <module>`
bool IsFrame(absl::string_view line) {
  return Indent(line) > 0 && absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "File \"") &&
         absl::StrContains(line, "\", line ");
}

// Where the frames end that begin at `begin`, each with the lines of source below it.
size_t EndOfStack(const std::vector<std::string>& lines, size_t begin) {
  const size_t indent = Indent(lines[begin]);
  size_t end = begin + 1;
  while (end < lines.size() && (IsFrame(lines[end]) || Indent(lines[end]) > indent)) ++end;
  return end;
}

// Where its last frames begin.
size_t LastFrames(const std::vector<std::string>& lines, size_t begin, size_t end) {
  int frames = 0;
  while (end > begin && frames < kMostFrames) frames += IsFrame(lines[--end]) ? 1 : 0;
  return end;
}

std::string QuoteAll(const std::vector<std::string>& words) {
  return absl::StrJoin(
      words, " ", [](std::string* out, const std::string& word) { out->append(ShellQuote(word)); });
}

// Ours again, keeping the logs.
std::string RunAgain(const ScreenOptions& options) {
  std::vector<std::string> words = options.command_line;
  const auto run = std::find(words.begin(), words.end(), "run");
  if (run == words.end()) return QuoteAll(words);
  words.insert(run + 1, {"--log_dir", "logs"});
  return QuoteAll(words);
}

std::string NextStep(const LocalJob& job, const JobOutcome& outcome, const ScreenOptions& options) {
  if (!outcome.failed_task.has_value()) {
    return "give it more time (activeDeadlineSeconds), or see where it spends it:\n  " +
           RunAgain(options);
  }
  const LocalTask& task = job.tasks[*outcome.failed_task];
  const std::string& program = task.program;
  if (outcome.exit_code == 127 && !outcome.tasks[*outcome.failed_task].last_exit.has_value()) {
    // A volume or a folder that is missing is no fault of the program.
    if (!absl::StrContains(outcome.reason, program)) {
      return "mend that, then run it again:\n  " + QuoteAll(options.command_line);
    }
    return absl::StrCat("is it installed, is the path right?\n  ",
                        absl::StrContains(program, '/') ? "ls -l " : "type ", ShellQuote(program));
  }
  std::string hint;
  if (outcome.exit_code == 128 + SIGKILL) {
    hint = absl::StrContains(outcome.reason, "limit")
               ? "give its container more memory: resources.limits.memory\n"
               : "if nobody killed it, was the machine out of memory?\n  dmesg | tail -20\n";
    if (task.restart_policy == RestartPolicy::kNever) {
      absl::StrAppend(&hint, "its restartPolicy is Never; to have it started again:\n  ");
      std::vector<std::string> words = options.command_line;
      const auto run = std::find(words.begin(), words.end(), "run");
      if (run != words.end()) {
        // Instead of the policy that the command line itself may give; the program's words stay.
        const auto dashes = std::find(run, words.end(), "--");
        const auto given = std::find_if(run, dashes, [](const std::string& word) {
          return word == "--restart" || absl::StartsWith(word, "--restart=");
        });
        if (given != dashes) {
          words.erase(given, *given == "--restart" && given + 1 != dashes ? given + 2 : given + 1);
        }
        words.insert(words.begin() + (run - words.begin()) + 1, {"--restart", "OnFailure"});
      }
      return absl::StrCat(hint, QuoteAll(words));
    }
  }
  if (!options.log_folder.empty()) {
    return absl::StrCat(hint, "all that it printed:\n  less ",
                        ShellQuote(JoinPath(options.log_folder, task.name + ".log")));
  }
  return absl::StrCat(hint, "run it again and keep all that the tasks print:\n  ",
                      RunAgain(options));
}

}  // namespace

std::string ShellQuote(const std::string& text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_./:=,@%+", c);
  });
  if (is_plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> LastLinesToShow(const std::vector<std::string>& lines, size_t most) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < lines.size();) {
    const size_t end = IsFrame(lines[i]) ? EndOfStack(lines, i) : i + 1;
    const size_t last = LastFrames(lines, i, end);
    if (last > i + 1) {
      shown.push_back(absl::StrCat("  ... ", last - i, " lines of the stack"));
      i = last;
    }
    shown.insert(shown.end(), lines.begin() + static_cast<int64_t>(i),
                 lines.begin() + static_cast<int64_t>(end));
    i = end;
  }
  if (shown.size() > most) shown.erase(shown.begin(), shown.end() - static_cast<int64_t>(most));
  return shown;
}

std::string FailureScreen(const LocalJob& job, const JobOutcome& outcome,
                          const ScreenOptions& options) {
  const std::string who = outcome.failed_task.has_value() ? job.tasks[*outcome.failed_task].name
                                                          : absl::StrCat("job ", job.name);
  std::string text = absl::StrFormat("\n%s\n%s\n", std::string(79, '-'),
                                     Shorten(absl::StrCat(who, " failed: ", outcome.reason)));
  absl::StrAppendFormat(&text, "job '%s', %.1f s after its start; weft's exit code is %d\n\n",
                        job.name, absl::ToDoubleSeconds(outcome.elapsed), outcome.exit_code);
  if (outcome.failed_task.has_value()) {
    absl::StrAppend(&text, outcome.failed_lines.empty() ? "It printed nothing.\n"
                                                        : "The last lines that it printed:\n");
    for (const std::string& line : LastLinesToShow(outcome.failed_lines, kMostLines)) {
      absl::StrAppend(&text, "  | ", Shorten(line), "\n");
    }
    text += '\n';
  }
  absl::StrAppend(&text, "Tasks:\n", TaskTable(job, outcome),
                  "\nNext: ", NextStep(job, outcome, options), "\n", std::string(79, '-'), "\n");
  return text;
}

}  // namespace weft::platform
