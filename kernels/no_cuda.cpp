#include "kernels/device.h"

namespace rehearse::kernels {

std::unique_ptr<Device> open_cuda(int /*index*/) {
  throw DeviceMissing("this build has no CUDA; configure with the preset \"cuda\"");
}

}  // namespace rehearse::kernels
