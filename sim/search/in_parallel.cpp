#include "search/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rehearse {

void in_parallel(std::size_t count, int threads, const std::function<void(int, std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto loop = [&](int thread) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(thread, i);
    } catch (...) {
      next = count;
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto most = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), count));
    for (int thread = 1; thread < most; ++thread) others.emplace_back(loop, thread);
    loop(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rehearse
