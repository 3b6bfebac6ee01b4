#include "execute/passes.h"

namespace rehearse {

namespace {

class PassMaker {
 public:
  PassMaker(const Block& block, const std::vector<TensorPlace>& places) : block_(block), places_(places) {}

  BlockPasses make(bool again_together) {
    BlockPasses passes;
    add(passes.forward, block_.forward);
    add(again_together ? passes.again : passes.backward, block_.recompute);
    add(passes.backward, block_.backward_input);
    passes.backward_input = passes.backward;
    add(passes.backward, block_.backward_weight);
    add(passes.backward_weight, block_.backward_weight);

    Marks saved = marks();
    for (const TensorId id : block_.saved) mark(saved, id);
    mark(saved, block_.output);
    mark_deaths(passes.forward, saved);

    Marks handed_on = marks();
    mark(handed_on, block_.input_gradient);
    mark_deaths(passes.backward, handed_on);
    mark_deaths(passes.backward_weight, handed_on);
    mark_reads(handed_on, block_.backward_weight);
    mark_deaths(passes.backward_input, handed_on);

    Marks read_later = marks();
    mark(read_later, block_.output);
    mark_reads(read_later, block_.backward_input);
    mark_reads(read_later, block_.backward_weight);
    mark_deaths(passes.again, read_later);
    return passes;
  }

 private:
  using Marks = std::vector<bool>;  // by matrix

  Marks marks() const { return Marks(block_.tensors.size()); }
  std::size_t matrix(TensorId id) const {
    return static_cast<std::size_t>(places_[static_cast<std::size_t>(id)].matrix);
  }
  void mark(Marks& marks, TensorId id) const {
    if (id >= 0) marks[matrix(id)] = true;
  }

  void mark_reads(Marks& marks, const std::vector<Kernel>& kernels) const {
    for (const Kernel& kernel : kernels)
      for (const TensorId id : kernel.reads) mark(marks, id);
  }

  static void add(Pass& pass, const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) pass.push_back({&kernel, {}});
  }

  // From the last step to the first: the first use found is a matrix's last use.
  void mark_deaths(Pass& pass, const Marks& stays) const {
    Marks met = stays;
    for (auto step = pass.rbegin(); step != pass.rend(); ++step) {
      for (const auto* ids : {&step->kernel->reads, &step->kernel->writes}) {
        for (const TensorId id : *ids) {
          if (met[matrix(id)]) continue;
          met[matrix(id)] = true;
          step->dies.push_back(static_cast<TensorId>(matrix(id)));
        }
      }
    }
  }

  const Block& block_;
  const std::vector<TensorPlace>& places_;
};

}  // namespace

BlockPasses make_passes(const Block& block, const std::vector<TensorPlace>& places, bool again_together) {
  return PassMaker(block, places).make(again_together);
}

}  // namespace rehearse
