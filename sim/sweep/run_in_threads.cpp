#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "sweep/run_points.h"

namespace rehearse {

Row evaluate_safely(const Evaluate& evaluate, Point point) {
  try {
    return evaluate(point);
  } catch (const std::bad_alloc&) {
    return {RowState::failed, "out of memory", nullptr};
  } catch (const std::exception& error) {
    return {RowState::failed, error.what(), nullptr};
  }
}

namespace {

// As many threads as the system grants; one is enough.
void add_worker(std::vector<std::jthread>& workers, const std::function<void()>& work) {
  try {
    workers.emplace_back(work);
  } catch (const std::system_error&) {
    if (workers.empty()) throw;
  }
}

}  // namespace

void run_in_threads(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                    const Deliver& deliver) {
  std::exception_ptr failure;
  std::mutex mutex;
  const auto begun = [&]() -> std::optional<Point> {
    const std::scoped_lock lock(mutex);
    return failure ? std::nullopt : next();
  };
  const auto work = [&] {
    while (!stopped()) {
      const std::optional<Point> point = begun();
      if (!point) return;
      const Row row = evaluate_safely(evaluate, *point);
      const std::scoped_lock lock(mutex);
      try {
        if (!failure) deliver(*point, row);
      } catch (...) {
        failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < jobs; ++i) add_worker(workers, work);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rehearse
