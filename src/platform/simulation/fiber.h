// SPDX-License-Identifier: Apache-2.0
// Threads of control that change places only where they say so.
#pragma once

#include <functional>
#include <memory>

#include <ucontext.h>

namespace weft::platform::simulation {

// Runs `body` piece by piece on a stack of its own, all on the thread that resumes it. Must have
// finished when it is destroyed. What it holds when it yields stays held: no locks then.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it yields or ends. Not from inside a fiber.
  void Resume();
  bool finished() const { return finished_; }
  // From inside: back to who resumed it.
  static void Yield();

 private:
  static void Enter();

  std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  ucontext_t inside_;
  ucontext_t outside_;
  bool finished_ = false;
};

}  // namespace weft::platform::simulation
