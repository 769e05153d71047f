// SPDX-License-Identifier: Apache-2.0
// First values of variables from another model's checkpoint.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "weft/train/monitored_session.h"
#include "weft/train/program.h"

namespace weft::estimator {

// A vocabulary's rows in another order: of variables with a row for each word.
struct VocabularyChange {
  std::string new_file, old_file;  // one word a line
  int64_t new_size = 0;            // without words that are hashed
  int64_t old_size = -1;           // -1: all lines of the old file
  int64_t num_oov_buckets = 0;     // rows behind the vocabulary's, which keep their first values
};

struct WarmStart {
  std::string checkpoint;        // a folder with checkpoints, or one; empty: no warm start
  std::string variables = ".*";  // trainable ones whose names begin with what this pattern matches
  // Of variables that have another name in the checkpoint, by their names here.
  std::map<std::string, std::string> previous_names = {};
  std::map<std::string, VocabularyChange> vocabularies = {};  // by variables' names
};

// Adds the nodes that read the values, and has `scaffold` run them where nothing is restored. Call
// it when the program has all its variables. InvalidArgument for a pattern that is none or names of
// variables that there are not; NotFound where the checkpoint has not got a value.
Status AddWarmStart(train::Program& program, const WarmStart& warm_start,
                    train::Scaffold* scaffold);

}  // namespace weft::estimator
