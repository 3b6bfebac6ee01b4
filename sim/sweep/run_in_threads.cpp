#include <exception>
#include <mutex>
#include <thread>

#include "sweep/run_points.h"

namespace rehearse {

namespace {

Row evaluate_safely(const Evaluate& evaluate, Point point) {
  try {
    return evaluate(point);
  } catch (const std::exception& error) {
    return {RowState::failed, error.what(), nullptr};
  }
}

}  // namespace

void run_in_threads(const std::vector<Point>& points, const Evaluate& evaluate, int jobs,
                    const std::atomic<bool>& stop, const Deliver& deliver) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    while (!stop) {
      const std::size_t i = next++;
      if (i >= points.size()) return;
      const Row row = evaluate_safely(evaluate, points[i]);
      const std::scoped_lock lock(mutex);
      try {
        if (!failure) deliver(points[i], row);
      } catch (...) {
        failure = std::current_exception();
        next = points.size();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < jobs; ++i) workers.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rehearse
