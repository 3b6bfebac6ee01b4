#include "cost/nccl/read_model.h"
#include "fuzz/target.h"
#include "run/validate_nccl.h"

namespace rehearse::fuzz {

namespace {

// Like `validate --nccl`: the table, its cluster, and the predictions for its rows.
const Target kNcclTable("nccl_table", [](const std::string& input) {
  static const nccl::Model model = nccl::read_model(nccl::kDefaultModel);
  validate_nccl({file_of(input)}, model);
});

}  // namespace

}  // namespace rehearse::fuzz
