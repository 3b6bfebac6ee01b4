// How does one thread of the host run many threads of a block? As functions that pause and go on.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <functional>

namespace cuda_on_cpu {

// Belongs to one thread.
class Fiber {
 public:
  // `run` ends when it is resumed after the fiber has been told to end.
  explicit Fiber(std::function<void()> run);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  void resume();  // until it pauses
  void pause();   // from inside

 private:
  boost::context::fiber main(boost::context::fiber&& caller);

  std::function<void()> run_;
  boost::context::stack_context stack_;
  boost::context::fiber inside_, caller_;
  const void* caller_bottom_ = nullptr;  // of its stack, for AddressSanitizer
  std::size_t caller_bytes_ = 0;
  void *kept_ = nullptr, *caller_kept_ = nullptr;
  void *identity_ = nullptr, *caller_identity_ = nullptr;  // for ThreadSanitizer
};

}  // namespace cuda_on_cpu
