#include <cblas.h>

#include "kernels/cpu/blas.h"

namespace rehearse::kernels::cpu {

namespace {

CBLAS_TRANSPOSE as_given(const Factor& factor) {
  return factor.transpose ? CblasTrans : CblasNoTrans;
}

// Threads of ours call it side by side.
const bool one_thread = [] {
  openblas_set_num_threads(1);
  return true;
}();

}  // namespace

void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta,
           float* c, std::int64_t step) {
  cblas_sgemm(CblasRowMajor, as_given(a), as_given(b), static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a.data, static_cast<int>(a.step), b.data, static_cast<int>(b.step),
              beta, c, static_cast<int>(step));
}

// openblas_get_config() starts with the name and version.
std::string blas_name() {
  const std::string config = openblas_get_config();
  const std::string version = config.substr(0, config.find(' ', config.find(' ') + 1));
  return version + " (" + openblas_get_corename() + ")";
}

}  // namespace rehearse::kernels::cpu
