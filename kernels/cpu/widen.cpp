#include "kernels/cpu/widen.h"

#include <array>
#include <optional>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/operands.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"
#include "kernels/short_float.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr std::int64_t kGrain = 4096;  // elements of a thread's share

template <typename From, typename To>
void convert(const From* from, std::int64_t from_stride, To* to, std::int64_t to_stride, std::int64_t rows,
             std::int64_t columns) {
  const auto some = [](const From* in, To* out, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) out[i] = static_cast<To>(in[i]);
  };
  if (from_stride == columns && to_stride == columns)
    return for_stretches(rows * columns, kGrain,
                         [&](std::int64_t first, std::int64_t last) { some(from, to, first, last); });
  for_each(rows, [&](std::int64_t r) { some(from + r * from_stride, to + r * to_stride, 0, columns); });
}

// fp32 scratch memory of the calling thread for operand `number` of its current call.
float* scratch(std::size_t number, std::int64_t elements) {
  thread_local std::array<std::vector<float>, kMaxOperands> memory;
  std::vector<float>& own = memory.at(number);
  if (own.size() < static_cast<std::size_t>(elements)) own.resize(static_cast<std::size_t>(elements));
  return own.data();
}

// The fp32 copies of a call's operands.
class Wide {
 public:
  // Replaces the operand's tensor by its fp32 copy.
  void take(const Operand& operand) {
    Tensor& tensor = operand.tensor;
    if (!tensor.given()) return;
    std::optional<Type>& type = types_.at(operand.kind);
    require(!type || *type == tensor.type, "operands of a call differ in type");
    type = tensor.type;
    if (!is_short(tensor.type)) return;
    Copy& copy = copies_.at(copied_);
    copy.of = tensor;
    copy.count = operand.count;
    copy.step = operand.step == nullptr ? 0 : *operand.step;
    copy.written = operand.access != Access::read;
    copy.memory = scratch(copied_++, operand.count * tensor.elements());
    tensor = Tensor(copy.memory, Type::fp32, tensor.rows, tensor.columns);
    if (operand.step != nullptr) *operand.step = tensor.elements();
    if (operand.access != Access::write) widen(copy);
  }

  void give_back() const {
    for (std::size_t i = 0; i < copied_; ++i)
      if (copies_[i].written) round(copies_[i]);
  }

 private:
  struct Copy {
    Tensor of;
    std::int64_t count = 1, step = 0;
    float* memory = nullptr;
    bool written = false;
  };

  static void widen(const Copy& copy) {
    for_products(copy, [&copy](auto* narrow, float* wide) {
      convert(narrow, copy.of.stride, wide, copy.of.columns, copy.of.rows, copy.of.columns);
    });
  }
  static void round(const Copy& copy) {
    for_products(copy, [&copy](auto* narrow, float* wide) {
      convert(wide, copy.of.columns, narrow, copy.of.stride, copy.of.rows, copy.of.columns);
    });
  }

  // body(first element, first element of its copy) for each of the matrices.
  template <typename Body>
  static void for_products(const Copy& copy, const Body& body) {
    by_short_type(copy.of.type, [&](auto zero) {
      for (std::int64_t i = 0; i < copy.count; ++i)
        body(static_cast<decltype(zero)*>(copy.of.data) + i * copy.step,
             copy.memory + i * copy.of.elements());
    });
  }

  std::array<Copy, kMaxOperands> copies_;
  std::array<std::optional<Type>, kMaxKinds> types_;
  std::size_t copied_ = 0;
};

}  // namespace

void run_widened(Call& call) {
  std::visit(
      [](auto& which) {
        bool any_short = false;
        for_each_operand(which, [&](const Operand& operand) { any_short |= is_short(operand.tensor.type); });
        if (!any_short) return run(which);
        Wide wide;
        for_each_operand(which, [&](const Operand& operand) { wide.take(operand); });
        run(which);
        wide.give_back();
      },
      call);
}

}  // namespace rehearse::kernels::cpu
