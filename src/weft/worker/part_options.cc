// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/part_options.h"

#include "proto/tensorflow/config.pb.h"

namespace weft::worker {

step::PartOptions PartOptionsFromConfig(const tensorflow::ConfigProto& config) {
  const tensorflow::GraphOptions& options = config.graph_options();
  const bool optimise =
      options.optimizer_options().opt_level() != tensorflow::OptimizerOptions::L0 &&
      !options.rewrite_options().disable_meta_optimizer();
  using tensorflow::RewriterConfig;
  return {.fold = optimise && options.rewrite_options().constant_folding() != RewriterConfig::OFF,
          .fuse = optimise && options.rewrite_options().remapping() != RewriterConfig::OFF};
}

}  // namespace weft::worker
