#include "kernels/cpu/stream.h"

#include <cstring>
#include <utility>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/widen.h"

namespace rehearse::kernels::cpu {

void CpuEvent::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return happened_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CpuEvent::happen(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  at_ = Clock::now();
  happened_ = true;
  failure_ = std::move(failure);
  changed_.notify_all();
}

double CpuEvent::seconds_since(Event& earlier) {
  auto& first = dynamic_cast<CpuEvent&>(earlier);
  first.wait();
  wait();
  return std::chrono::duration<double>(at_ - first.at_).count();
}

CpuStream::CpuStream(int threads) : threads_(threads), thread_([this] { work(); }) {}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CpuStream::launch(const Call& call) {
  put([own = call]() mutable { run_widened(own); });
}

void CpuStream::copy(void* to, const void* from, std::size_t bytes) {
  put([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void CpuStream::clear(void* memory, std::size_t bytes) {
  put([memory, bytes] { std::memset(memory, 0, bytes); });
}

std::shared_ptr<Event> CpuStream::record() {
  auto event = std::make_shared<CpuEvent>();
  put(Item{[this, event] { event->happen(failure_); }, true});
  return event;
}

void CpuStream::wait(const std::shared_ptr<Event>& event) {
  put([event] { event->wait(); });
}

void CpuStream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return items_.empty() && !busy_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CpuStream::put(std::function<void()> action) {
  put(Item{std::move(action)});
}

void CpuStream::put(Item item) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    wakes = !busy_ && items_.size() == 1;
  }
  if (wakes) changed_.notify_all();
}

// Takes all queued items at once, so that the thread that launches rarely waits for the lock.
void CpuStream::work() {
  team = threads_;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !items_.empty(); });
    if (items_.empty()) return;
    taken_.swap(items_);
    busy_ = true;
    lock.unlock();
    for (; !taken_.empty(); taken_.pop_front()) run(taken_.front());
    lock.lock();
    busy_ = false;
    if (items_.empty()) changed_.notify_all();
  }
}

void CpuStream::run(const Item& item) {
  if (failure_ && !item.even_after_failure) return;
  try {
    item.action();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}

CpuStream& as_cpu(Stream& stream) {
  auto* cpu = dynamic_cast<CpuStream*>(&stream);
  if (cpu == nullptr) throw DeviceError("messages through memory need a stream of the CPU");
  return *cpu;
}

}  // namespace rehearse::kernels::cpu
