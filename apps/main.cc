// SPDX-License-Identifier: Apache-2.0
// weft: one program, one subcommand a task.
#include <cstdio>

#include "apps/command.h"

int main(int argc, char** argv) {
  CLI::App app("weft: distributed training for TensorFlow graphs");
  app.set_version_flag("--version", "weft 0.1.0");
  app.require_subcommand(1);
  weft::apps::Action action;
  weft::apps::AddServer(app, &action);
  weft::apps::AddInspect(app, &action);
  CLI11_PARSE(app, argc, argv);
  return action ? action() : 2;
}
