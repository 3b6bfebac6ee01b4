#include "kernels/device.h"

namespace rehearse::kernels {

std::unique_ptr<Device> open_cuda(int /*index*/, bool /*cudnn*/) {
  throw DeviceMissing("this build has no CUDA; configure with the preset \"cuda\"");
}

std::vector<std::unique_ptr<Device>> open_cuda_partitions(int index, int /*count*/) {
  open_cuda(index);  // throws
  return {};
}

}  // namespace rehearse::kernels
