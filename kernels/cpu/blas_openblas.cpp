// The first GEMM loads OpenBLAS, instead of program start. Its threads, one a core, allocate 128 MB each as
// they start. They wait forever where a memory limit refuses the allocation.
#include <cblas.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdlib>

#include "kernels/cpu/blas.h"
#include "kernels/device.h"

namespace rehearse::kernels::cpu {

namespace {

// OpenBLAS allocates a buffer for each thread that multiplies, and from 0.3.29 on one when it is loaded.
// Without enough memory it retries forever (OpenMathLib/OpenBLAS#5289).
constexpr std::size_t kBufferBytes = 160 << 20;
constexpr std::size_t kLibraryBytes = 64 << 20;  // for Debian's library of 37 MB and its libgfortran

void require_room(std::size_t bytes) {
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw OutOfMemory("the machine has no memory left for a buffer of OpenBLAS");
  munmap(room, bytes);
}

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_get_config) config = nullptr;
  decltype(&openblas_get_corename) core = nullptr;

  OpenBlas() {
    require_room(kLibraryBytes + kBufferBytes);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);  // our own threads call it concurrently
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw DeviceMissing(std::string("no OpenBLAS: ") + dlerror());
    find(library, "cblas_sgemm", sgemm);
    find(library, "openblas_get_config", config);
    find(library, "openblas_get_corename", core);
  }

  template <typename Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw DeviceMissing(std::string("OpenBLAS has no ") + name);
  }
};

const OpenBlas& open_blas() {
  static const OpenBlas loaded;
  return loaded;
}

CBLAS_TRANSPOSE as_given(const Factor& factor) {
  return factor.transpose ? CblasTrans : CblasNoTrans;
}

}  // namespace

void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta,
           float* c, std::int64_t step) {
  [[maybe_unused]] thread_local const bool has_room = (require_room(kBufferBytes), true);
  open_blas().sgemm(CblasRowMajor, as_given(a), as_given(b), static_cast<int>(m), static_cast<int>(n),
                    static_cast<int>(k), alpha, a.data, static_cast<int>(a.step), b.data,
                    static_cast<int>(b.step), beta, c, static_cast<int>(step));
}

// openblas_get_config() starts with the name and version.
std::string blas_name() {
  const std::string config = open_blas().config();
  const std::string version = config.substr(0, config.find(' ', config.find(' ') + 1));
  return version + " (" + open_blas().core() + ")";
}

}  // namespace rehearse::kernels::cpu
