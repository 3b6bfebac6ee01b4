#include "fiber.h"

#include <utility>

// Weak: they are there where AddressSanitizer or ThreadSanitizer is.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** kept, const void* bottom, std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* kept, const void** bottom, std::size_t* bytes);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace cuda_on_cpu {

namespace {

constexpr std::size_t kStackBytes = std::size_t{128} << 10;

// To a stack, from one that is kept unless it is no more.
void leave(void** kept, const void* bottom, std::size_t bytes, void* identity) {
  constexpr unsigned kUnordered = 1;  // threads of a block are ordered by its barriers alone
  if (__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(kept, bottom, bytes);
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(identity, kUnordered);
}
void arrive(void* kept, const void** bottom, std::size_t* bytes) {
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(kept, bottom, bytes);
}

}  // namespace

Fiber::Fiber(std::function<void()> run)
    : run_(std::move(run)), identity_(__tsan_create_fiber != nullptr ? __tsan_create_fiber(0) : nullptr) {
  boost::context::fixedsize_stack stacks(kStackBytes);
  stack_ = stacks.allocate();
  inside_ = boost::context::fiber(std::allocator_arg,
                                  boost::context::preallocated(stack_.sp, stack_.size, stack_), stacks,
                                  [this](boost::context::fiber&& caller) { return main(std::move(caller)); });
}

Fiber::~Fiber() {
  resume();
  if (__tsan_destroy_fiber != nullptr) __tsan_destroy_fiber(identity_);
}

void Fiber::resume() {
  if (__tsan_get_current_fiber != nullptr) caller_identity_ = __tsan_get_current_fiber();
  leave(&caller_kept_, static_cast<std::byte*>(stack_.sp) - stack_.size, stack_.size, identity_);
  inside_ = std::move(inside_).resume();
  arrive(caller_kept_, nullptr, nullptr);
}

void Fiber::pause() {
  leave(&kept_, caller_bottom_, caller_bytes_, caller_identity_);
  caller_ = std::move(caller_).resume();
  arrive(kept_, &caller_bottom_, &caller_bytes_);
}

boost::context::fiber Fiber::main(boost::context::fiber&& caller) {
  arrive(nullptr, &caller_bottom_, &caller_bytes_);
  caller_ = std::move(caller);
  run_();
  leave(nullptr, caller_bottom_, caller_bytes_, caller_identity_);
  return std::move(caller_);
}

}  // namespace cuda_on_cpu
