#include "frameworks/megatron_swift.h"

#include <algorithm>

namespace rehearse {

namespace {

// Whether the run gives the option, be it "false".
bool is_said(const MegatronFlags& flags, const std::string& name) {
  return std::ranges::any_of(flags.options(), [&](const ImportedOption& option) {
    return std::ranges::count(option.known_as, name) > 0;
  });
}

}  // namespace

void add_swift_defaults(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes) {
  if (!flags.has("--model")) return;
  if (plan["precision"] == "fp32") plan["precision"] = "bf16";
  if (!plan.contains("zero")) plan["zero"] = 1;
  if (!plan.contains("recompute")) plan["recompute"] = "selective";
  // swift/megatron/arguments/megatron_args.py: freeze_vit, freeze_aligner. They matter with --images alone.
  if (!is_said(flags, "--freeze-ViT")) plan["freeze_tower"] = true;
  if (!is_said(flags, "--freeze-aligner")) plan["freeze_projector"] = true;
  notes.emplace_back(
      "flags of ms-swift: bf16, the distributed optimizer, selective recompute and a frozen vision tower and "
      "projector are its defaults; for its other defaults Megatron-LM's are used");
}

}  // namespace rehearse
