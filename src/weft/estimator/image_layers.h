// SPDX-License-Identifier: Apache-2.0
// Layers on images [batch, height, width, channels]: sizes, and changes by chance while training.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

struct ResizingOptions {
  std::string interpolation = "bilinear";  // "nearest", "bicubic", "area" too
  std::string name = {};
};
LayerRef Resizing(int64_t height, int64_t width, const ResizingOptions& options = {});
// The middle of images that are at least as large.
LayerRef CenterCrop(int64_t height, int64_t width, const std::string& name = "");

// While training a part at one place for the whole batch, drawn anew each time; otherwise, or of
// images that are smaller, the middle of the wanted proportions, resized.
LayerRef RandomCrop(int64_t height, int64_t width, int64_t seed = 0, const std::string& name = "");

// The lowest and the highest number that may be drawn; one number f stands for -f to f.
struct DrawnRange {
  DrawnRange(double both) : lowest(-both), highest(both) {}  // NOLINT: as Keras
  DrawnRange(double low, double high) : lowest(low), highest(high) {}
  double lowest, highest;
};

// Each image is changed by numbers of its own; in inference none is.
struct RandomImageOptions {
  std::string fill_mode = "reflect";       // "constant", "wrap", "nearest"
  std::string interpolation = "bilinear";  // "nearest"
  double fill_value = 0;
  int64_t seed = 0;  // 0: after the model's seed, or anew each time
  std::string name = {};
};
// `mode` is horizontal, vertical or horizontal_and_vertical: then along both axes or along none.
LayerRef RandomFlip(const std::string& mode = "horizontal_and_vertical", int64_t seed = 0,
                    const std::string& name = "");
// By a share of a whole turn, of the height and the width, and by 1 + what is drawn.
LayerRef RandomRotation(DrawnRange factor, const RandomImageOptions& options = {});
LayerRef RandomTranslation(DrawnRange height_factor, DrawnRange width_factor,
                           const RandomImageOptions& options = {});
LayerRef RandomZoom(DrawnRange factor, const RandomImageOptions& options = {});
// Another height or width by a share of it, one for the whole batch. Keras 3 has them no more.
LayerRef RandomHeight(DrawnRange factor, const RandomImageOptions& options = {});
LayerRef RandomWidth(DrawnRange factor, const RandomImageOptions& options = {});
// Adds a share of 255, and stays between 0 and 255.
LayerRef RandomBrightness(DrawnRange factor, int64_t seed = 0, const std::string& name = "");
// Takes pixels further from their channel's mean by 1 - factor to 1 + factor.
LayerRef RandomContrast(double factor, int64_t seed = 0, const std::string& name = "");

}  // namespace weft::estimator
