#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# arm_test.sh SOURCES FOLDER: builds the vector kernels for aarch64 into FOLDER and runs their checks under qemu's user mode.
# Ends with 77, and says what to install, where the cross compiler or the emulator is missing.
set -euo pipefail
sources=$1 folder=$2
compiler=aarch64-linux-gnu-g++
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
if ! command -v "$compiler" >/dev/null || [ -z "$emulator" ]; then
  echo "SKIPPED: Arm kernels are not tested here: apt-get install g++-aarch64-linux-gnu qemu-user"
  exit 77
fi
mkdir -p "$folder"
objects=()
for file in weft/device/cpu/{gemm_block,narrow_conv_kernel,depthwise_kernel,winograd_kernel} weft/ops/nn/row_kernel \
  ../tests/vectors/kernels_program; do
  object=$folder/$(basename "$file").o
  # NEON is the only set in the program, so nothing of Highway's own library is needed.
  "$compiler" -std=c++20 -O3 -fno-math-errno -DHWY_SHARED_DEFINE -I"$sources/src" \
    -c "$sources/src/$file.cc" -o "$object"
  objects+=("$object")
done
"$compiler" -static "${objects[@]}" -o "$folder/kernels_program"
timeout 120 "$emulator" "$folder/kernels_program" NEON
