#include "cost/nccl/read_model.h"
#include "fuzz/target.h"
#include "run/validate_nccl.h"

// As `validate --nccl` does: the table, its cluster, and what is predicted for its rows.
void rehearse::fuzz::read(const std::string& input) {
  static const nccl::Model model = nccl::read_model(nccl::kDefaultModel);
  validate_nccl({file_of(input)}, model);
}
