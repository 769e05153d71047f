// SPDX-License-Identifier: Apache-2.0
// weft: one program, one subcommand a task.
#include <algorithm>
#include <cstdio>

#include "apps/command.h"
#include "apps/suggestion.h"
#include "base/nearest_name.h"

namespace {

// Empty when the first word is a subcommand, a flag or not there.
std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1].empty() || words[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[1]) != names.end()) return "";
  const std::string nearest = weft::NearestName(words[1], names);
  std::string message = "weft: there is no command '" + words[1] + "'";
  if (!nearest.empty()) return message + ". Did you mean 'weft " + nearest + "'?";
  message += ". There are:";
  for (const std::string& name : names) message += " " + name;
  return message;
}

// Of `weft run` and `weft exec`, whose program stands behind two dashes: the command line with
// them, when there is a word that belongs to no flag. Empty for all others.
std::string WithDashes(const std::vector<std::string>& words, const CLI::App& app) {
  if (words.size() < 3 || (words[1] != "run" && words[1] != "exec")) return "";
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (extras.empty() || extras[0].starts_with("-")) return "";
  auto program = std::find(words.begin() + 2, words.end(), extras[0]);
  if (program == words.end()) return "";
  // `run` took the word before for its file.
  const bool took_one =
      words[1] == "run" && program != words.begin() + 2 && !(program - 1)->starts_with("-");
  if (took_one) --program;
  std::string line = "weft";
  for (auto word = words.begin() + 1; word != words.end(); ++word)
    line += (word == program ? " -- " : " ") + *word;
  return line;
}

// What is parsed of the words before the two dashes. Of a model server without the flags whose
// value is empty ("--ssl_config_file="), as templates make them: TensorFlow Serving's are unset by
// that.
std::vector<const char*> ToParse(const std::vector<std::string>& words, size_t count) {
  std::vector<const char*> parsed;
  const bool serves = words.size() > 1 && words[1] == "serve";
  for (size_t i = 0; i < count; ++i) {
    const std::string& word = words[i];
    const bool is_empty = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (!serves || !is_empty) parsed.push_back(word.c_str());
  }
  return parsed;
}

}  // namespace

int main(int argc, char** argv) {
  weft::apps::CommandLine line;
  line.words.assign(argv, argv + argc);
  const auto dashes = std::find(line.words.begin(), line.words.end(), "--");
  const std::vector<const char*> parsed =
      ToParse(line.words, static_cast<size_t>(dashes - line.words.begin()));
  if (dashes != line.words.end()) line.program.assign(dashes + 1, line.words.end());

  CLI::App app("weft: distributed training for TensorFlow graphs");
  app.set_version_flag("--version", "weft " WEFT_VERSION);
  app.require_subcommand(1);
  weft::apps::Action action;
  weft::apps::AddRun(app, line, &action);
  weft::apps::AddExec(app, line, &action);
  weft::apps::AddServe(app, &action);
  weft::apps::AddPredict(app, &action);
  weft::apps::AddServer(app, line, &action);
  weft::apps::AddSecret(app, &action);
  weft::apps::AddInspect(app, &action);
  weft::apps::AddCheck(app, &action);
  weft::apps::AddOpLibrary(app, &action);
  weft::apps::AddTune(app, line, &action);
  weft::apps::AddSuggestion(app, &action);
  weft::apps::AddUi(app, &action);
  weft::apps::AddUp(app, &action);
  weft::apps::AddObjects(app, &action);
  weft::apps::AddOperator(app, &action);
  weft::apps::AddNode(app, &action);
  weft::apps::AddAgent(app, &action);
  weft::apps::AddBench(app, &action);
  weft::apps::AddScheduler(app, &action);
  weft::apps::AddSimulate(app, &action);
  weft::apps::AddPlan(app, line, &action);
  weft::apps::AddRender(app, &action);
  weft::apps::AddCrd(app, &action);
  weft::apps::AddDoctor(app, &action);
  const std::string unknown = UnknownCommand(app, line.words);
  if (!unknown.empty()) {
    std::fprintf(stderr, "%s\n", unknown.c_str());
    return 2;
  }
  try {
    app.parse(static_cast<int>(parsed.size()), parsed.data());
  } catch (const CLI::ExtrasError& error) {
    const std::string with_dashes = line.program.empty() ? WithDashes(line.words, app) : "";
    if (with_dashes.empty()) return app.exit(error);
    std::fprintf(stderr, "weft %s: the program comes after two dashes: %s\n", line.words[1].c_str(),
                 with_dashes.c_str());
    return 2;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return action ? action() : 2;
}
