#include "stream.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "order.h"

namespace {

using Stream = std::shared_ptr<CUstream_st>;

// Never destroyed: streams may run until the process ends.
struct Streams {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<cudaStream_t, Stream> all;  // whose threads go on
  std::vector<std::thread> over;       // threads of those that have run all
};
Streams& streams() {
  static auto* const made = new Streams;
  return *made;
}

void join(std::vector<std::thread> threads) {
  for (std::thread& thread : threads) thread.join();
}

// Runs when the process ends. Leak detection would report the memory of a thread that ends at that time.
void join_ending() {
  constexpr std::chrono::seconds kLongest(1);
  std::vector<std::thread> over;
  {
    const cuda_on_cpu::Unseen unseen;
    std::unique_lock lock(streams().mutex);
    streams().changed.wait_for(lock, kLongest, [] {
      return std::ranges::none_of(streams().all, [](const auto& one) { return one.second->ending(); });
    });
    over.swap(streams().over);
  }
  join(std::move(over));
}

thread_local bool on_a_stream = false;

}  // namespace

Stream CUstream_st::start() {
  [[maybe_unused]] static const int at_exit = std::atexit(join_ending);
  const auto made = std::make_shared<CUstream_st>();
  std::vector<std::thread> over;
  {
    const cuda_on_cpu::Unseen unseen;
    const std::lock_guard lock(streams().mutex);
    streams().all[made.get()] = made;
    made->thread_ = std::thread([made] { made->run(); });
    over.swap(streams().over);
  }
  join(std::move(over));
  return made;
}

void CUstream_st::put(std::function<void()> task) {
  auto made = std::make_shared<std::function<void()>>(std::move(task));
  cuda_on_cpu::release(made.get());
  const cuda_on_cpu::Unseen unseen;
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(made));
  changed_.notify_all();
}

void CUstream_st::end() {
  const cuda_on_cpu::Unseen unseen;
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

bool CUstream_st::ending() {
  const cuda_on_cpu::Unseen unseen;
  const std::lock_guard lock(mutex_);
  return ending_;
}

bool CUstream_st::idle() {
  {
    const cuda_on_cpu::Unseen unseen;
    const std::lock_guard lock(mutex_);
    if (!tasks_.empty()) return false;
  }
  cuda_on_cpu::acquire(this);
  return true;
}

void CUstream_st::drain() {
  {
    const cuda_on_cpu::Unseen unseen;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
  }
  cuda_on_cpu::acquire(this);
}

void CUstream_st::run() {
  on_a_stream = true;
  for (;;) {
    std::shared_ptr<std::function<void()>> task;
    {
      const cuda_on_cpu::Unseen unseen;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) break;
      task = tasks_.front();
    }
    cuda_on_cpu::acquire(task.get());
    (*task)();
    *task = nullptr;
    cuda_on_cpu::release(this);
    const cuda_on_cpu::Unseen unseen;
    const std::lock_guard lock(mutex_);
    tasks_.pop_front();
    task = nullptr;
    changed_.notify_all();
  }
  const cuda_on_cpu::Unseen unseen;
  const std::lock_guard lock(streams().mutex);
  streams().over.push_back(std::move(thread_));
  streams().all.erase(this);
  streams().changed.notify_all();
}

namespace cuda_on_cpu {

void Moment::happen() {
  seconds_ = now_s();
  release(this);
  const Unseen unseen;
  const std::lock_guard lock(mutex_);
  happened_ = true;
  changed_.notify_all();
}

bool Moment::happened() {
  {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    if (!happened_) return false;
  }
  acquire(this);
  return true;
}

void Moment::wait() {
  {
    const Unseen unseen;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return happened_; });
  }
  acquire(this);
}

CUstream_st& stream_of(cudaStream_t handle) {
  if (handle != nullptr) return *handle;
  static CUstream_st& of_all_devices = *CUstream_st::start();
  return of_all_devices;
}

cudaStream_t make_stream() {
  return CUstream_st::start().get();
}

void drain_all() {
  std::vector<Stream> all;
  {
    const Unseen unseen;
    const std::lock_guard lock(streams().mutex);
    for (const auto& [handle, stream] : streams().all) all.push_back(stream);
  }
  for (const Stream& stream : all) stream->drain();
}

bool is_on_a_stream() {
  return on_a_stream;
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cuda_on_cpu
