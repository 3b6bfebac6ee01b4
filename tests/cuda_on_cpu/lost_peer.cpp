// A rank whose peer is gone while it receives in two groups at once: started twice, as torchrun does. Rank 1
// kills itself when both groups stand; rank 0 ends with 0 once nothing waits for either group any more.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "kernels/communicator.h"

namespace rehearse::kernels {
namespace {

void wait_for(Stream& stream) {
  try {
    stream.synchronize();
  } catch (const DeviceError& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

int run() {
  const auto world = open_nccl_world(20);
  const auto device = open_cuda(world->rank());
  const auto first = world->connect("first", {0, 1}), second = world->connect("second", {0, 1});
  if (world->rank() == 1) raise(SIGKILL);
  const auto first_stream = device->make_stream(), second_stream = device->make_stream();
  const Buffer memory(*device, 4096);
  first->receive(*first_stream, Tensor(memory.data(), Type::fp32, 1, 512), 1);
  second->receive(*second_stream, Tensor(static_cast<float*>(memory.data()) + 512, Type::fp32, 1, 512), 1);
  std::thread waiting([&] { wait_for(*first_stream); });
  std::string reason;
  while (reason = world->ended(), reason.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  world->abort(reason);
  waiting.join();
  wait_for(*second_stream);
  return 0;
}

}  // namespace
}  // namespace rehearse::kernels

int main() {
  return rehearse::kernels::run();
}
