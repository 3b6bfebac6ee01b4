// The GEMM of builds without OpenBLAS: correct, and slow.
#include "kernels/cpu/blas.h"

namespace rehearse::kernels::cpu {

namespace {

float element(const Factor& factor, std::int64_t row, std::int64_t column) {
  return factor.transpose ? factor.data[column * factor.step + row] : factor.data[row * factor.step + column];
}

}  // namespace

void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta,
           float* c, std::int64_t step) {
  for (std::int64_t i = 0; i < m; ++i) {
    float* out = c + i * step;
    for (std::int64_t j = 0; j < n; ++j) out[j] = beta == 0 ? 0 : beta * out[j];
    for (std::int64_t l = 0; l < k; ++l) {
      const float share = alpha * element(a, i, l);
      for (std::int64_t j = 0; j < n; ++j) out[j] += share * element(b, l, j);
    }
  }
}

std::string blas_name() {
  return "plain loops";
}

}  // namespace rehearse::kernels::cpu
