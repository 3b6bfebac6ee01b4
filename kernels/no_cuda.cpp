#include "kernels/device.h"

namespace rehearse::kernels {

int count_gpus() {
  throw DeviceMissing("this build has no CUDA; configure with the preset \"cuda\"");
}

std::unique_ptr<Device> open_cuda(int /*index*/, bool /*cudnn*/) {
  count_gpus();  // throws
  return nullptr;
}

std::vector<std::unique_ptr<Device>> open_cuda_partitions(int index, int /*count*/) {
  open_cuda(index);  // throws
  return {};
}

}  // namespace rehearse::kernels
