// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/fiber.h"

#include <utility>
#include <vector>

namespace weft::platform::simulation {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
thread_local Fiber* running = nullptr;

// Stacks are used again: a fresh one costs page faults.
std::vector<std::unique_ptr<char[]>>& IdleStacks() {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

std::unique_ptr<char[]> TakeStack() {
  auto& idle = IdleStacks();
  if (idle.empty()) return std::unique_ptr<char[]>(new char[kStackBytes]);
  std::unique_ptr<char[]> stack = std::move(idle.back());
  idle.pop_back();
  return stack;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(TakeStack()) {
  ::getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = &outside_;
  ::makecontext(&inside_, &Fiber::Enter, 0);
}

Fiber::~Fiber() { IdleStacks().push_back(std::move(stack_)); }

void Fiber::Enter() {
  Fiber* const self = running;
  self->body_();
  self->finished_ = true;
}

void Fiber::Resume() {
  if (finished_) return;
  running = this;
  ::swapcontext(&outside_, &inside_);
  running = nullptr;
}

void Fiber::Yield() {
  Fiber* const self = running;
  ::swapcontext(&self->inside_, &self->outside_);
}

}  // namespace weft::platform::simulation
