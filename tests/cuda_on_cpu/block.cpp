#include "block.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "fiber.h"
#include "gpu.h"
#include "order.h"

constinit thread_local uint3 threadIdx, blockIdx;
constinit thread_local dim3 blockDim, gridDim;

namespace rehearse::kernels::cuda {
// Where the kernels say that the memory of their launch is.
extern thread_local float of_launch[];
alignas(256) thread_local float of_launch[cuda_on_cpu::kMaxSharedBytes / sizeof(float)];
}  // namespace rehearse::kernels::cuda

namespace cuda_on_cpu {

namespace {

constexpr unsigned kWarp = 32, kAll = 0xffffffffU;

enum class State : std::uint8_t { ready, at_warp, at_block, ended };

struct Thread {
  State state = State::ready;
  Fiber* fiber = nullptr;  // from its first barrier to its end
  unsigned exchanges = 0;
};

[[noreturn]] void diverged(const char* what, unsigned thread) {
  std::fprintf(stderr, "CUDA on the CPU: thread %u of block (%u, %u, %u) %s\n", thread, blockIdx.x,
               blockIdx.y, blockIdx.z, what);
  std::abort();
}

// The threads of one block at a time. A fiber runs one thread after the other as long as none of them waits.
class Block {
 public:
  ~Block() {
    ending_ = true;
    free_.clear();
    fibers_.clear();
  }

  void run(unsigned count, const std::function<void()>& body) {
    body_ = &body;
    threads_.assign(count, {});
    values_.resize(2 * std::size_t{count});
    release(this);
    while (!pass()) {
    }
    acquire(&ended_);
  }

  void wait(State at) {
    void* const meeting =
        at == State::at_block ? static_cast<void*>(&barrier_) : &values_[current_ / kWarp * kWarp];
    cuda_on_cpu::release(meeting);
    pause(at);
    acquire(meeting);
  }

  // Two places a thread: a thread at the next exchange must not overwrite values that others still read.
  std::uint64_t exchange(std::uint64_t mine, unsigned other) {
    const unsigned turn = deposit(mine);
    return values_[turn * threads_.size() + current_ / kWarp * kWarp + other];
  }
  unsigned ballot(bool holds) {
    const unsigned turn = deposit(holds ? 1 : 0);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < kWarp; ++lane)
      votes |= static_cast<unsigned>(values_[turn * threads_.size() + current_ / kWarp * kWarp + lane])
               << lane;
    return votes;
  }
  unsigned lane() const { return current_ % kWarp; }

 private:
  void pause(State at) {
    threads_[current_].state = at;
    threads_[current_].fiber->pause();
  }

  unsigned deposit(std::uint64_t mine) {
    const unsigned turn = threads_[current_].exchanges++ % 2;
    values_[turn * threads_.size() + current_] = mine;
    pause(State::at_warp);  // which orders no memory, unlike __syncwarp()
    return turn;
  }

  // From one barrier of the block to the next, the warps in another order each time; true when all have
  // ended.
  bool pass() {
    const auto count = static_cast<unsigned>(threads_.size()), warps = (count + kWarp - 1) / kWarp;
    backwards_ = !backwards_;
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned first = (backwards_ ? warps - 1 - i : i) * kWarp;
      while (!run_warp(first, std::min(count, first + kWarp))) {
      }
    }
    const State all = threads_.front().state;
    for (unsigned t = 0; t < count; ++t)
      if (threads_[t].state != all) diverged("is not at the barrier of the others", t);
    if (all == State::ended) return true;
    for (Thread& thread : threads_) thread.state = State::ready;
    return false;
  }

  // From one barrier of the warp to the next; true when its threads wait for other warps or have ended.
  bool run_warp(unsigned first, unsigned last) {
    unsigned waiting = 0;
    for (unsigned i = first; i < last; ++i) {
      const unsigned t = backwards_ ? first + last - 1 - i : i;
      if (threads_[t].state == State::ready) resume(t);
      if (threads_[t].state == State::at_warp) ++waiting;
    }
    if (waiting == 0) return true;
    for (unsigned t = first; t < last; ++t) {
      if (threads_[t].state != State::at_warp || last - first != kWarp)
        diverged("is not where its warp waits", t);
      threads_[t].state = State::ready;
    }
    return false;
  }

  void resume(unsigned t) {
    Thread& thread = threads_[t];
    if (thread.fiber == nullptr) {
      if (free_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>([this] { run_threads(); }));
        free_.push_back(fibers_.back().get());
      }
      thread.fiber = free_.back();
      free_.pop_back();
    }
    current_ = t;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    thread.fiber->resume();
    if (thread.state == State::ended) free_.push_back(thread.fiber);
  }

  void run_threads() {
    while (!ending_) {
      Fiber* const self = threads_[current_].fiber;
      acquire(this);
      (*body_)();
      cuda_on_cpu::release(&ended_);
      threads_[current_].state = State::ended;
      self->pause();
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<std::uint64_t> values_;  // that threads exchange
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_;
  unsigned current_ = 0;
  bool backwards_ = true, ending_ = false;
  char barrier_ = 0, ended_ = 0;
};

Block& block() {
  static thread_local Block of_this_thread;
  return of_this_thread;
}

void require_all(unsigned mask) {
  if (mask != kAll)
    diverged("exchanges with a part of its warp, which the stand-in does not know", threadIdx.x);
}

}  // namespace

void run_blocks(const cudaLaunchConfig_t& config, const std::function<void()>& thread) {
  constexpr int kGarbage = 0xff;
  gridDim = config.gridDim;
  blockDim = config.blockDim;
  const dim3 grid = config.gridDim;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        std::memset(rehearse::kernels::cuda::of_launch, kGarbage, config.dynamicSmemBytes);
        block().run(blockDim.x * blockDim.y * blockDim.z, thread);
      }
    }
  }
}

std::uint64_t exchanged(unsigned mask, std::uint64_t mine, unsigned other) {
  require_all(mask);
  return block().exchange(mine, other);
}

unsigned lane() {
  return block().lane();
}

}  // namespace cuda_on_cpu

void __syncthreads() {
  cuda_on_cpu::block().wait(cuda_on_cpu::State::at_block);
}

void __syncwarp(unsigned mask) {
  cuda_on_cpu::require_all(mask);
  cuda_on_cpu::block().wait(cuda_on_cpu::State::at_warp);
}

unsigned __ballot_sync(unsigned mask, bool holds) {
  cuda_on_cpu::require_all(mask);
  return cuda_on_cpu::block().ballot(holds);
}
