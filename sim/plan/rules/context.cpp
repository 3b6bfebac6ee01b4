#include <fmt/core.h>

#include <numeric>

#include "plan/frameworks/traits.h"
#include "plan/limits.h"
#include "plan/rules/rules.h"

namespace rehearse {

namespace {

class ContextRules {
 public:
  ContextRules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken)
      : plan_(plan), model_(model), broken_(broken) {}

  void check() {
    sequence();
    if (plan_.cp > 1 && !plan_.fused_attention)
      report("cp", "context parallelism needs fused attention", "fused_attention = off",
             "fused_attention = on, or 1");
    if (plan_.cp > 1) exchange();
    if (plan_.tp_comm_overlap && (!plan_.sequence_parallel || plan_.tp == 1))
      report("tp_comm_overlap", "needs tensor and sequence parallelism",
             fmt::format("tp = {}, sequence_parallel = {}", plan_.tp, plan_.sequence_parallel ? "on" : "off"),
             "off, or sequence_parallel = on");
    for (const auto& [field, sms] : {std::pair("tp_comm_proj_sms", plan_.tp_comm_proj_sms),
                                     std::pair("tp_comm_fc2_sms", plan_.tp_comm_fc2_sms)})
      if (sms > 0) multiprocessors(field, sms);
  }

 private:
  void multiprocessors(const char* field, int sms) {
    if (!plan_.tp_comm_overlap)
      report(field, "SMs are reserved only for a reduce-scatter that overlaps its GEMM",
             fmt::format("tp_comm_overlap = off, {} = {}", field, sms), "0, or tp_comm_overlap = on");
    if (traits(plan_).dtensor)
      report(field, "PyTorch symmetric memory uses copy engines, not SMs",
             fmt::format("framework = {}, {} = {}", to_string(plan_.framework), field, sms),
             "0, or framework = megatron-core");
  }

  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    broken_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  // Each rank takes two chunks, one from either end, so that causal attention has equal work.
  void sequence() {
    const std::int64_t chunks = plan_.cp > 1 ? 2 * std::int64_t{plan_.cp} : 1;
    const std::int64_t shards = plan_.sequence_parallel ? std::int64_t{plan_.cp} * plan_.tp : 1;
    const bool context = plan_.seq % chunks != 0;
    if (!context && plan_.seq % shards == 0) return;
    report("seq",
           context ? "the sequence must divide into 2 x cp chunks (context parallelism)"
                   : "the sequence must divide evenly over tp (sequence parallelism)",
           fmt::format("seq = {}, tp = {}, cp = {}", plan_.seq, plan_.tp, plan_.cp),
           multiples_near("seq", plan_.seq, kMaxTokens, std::lcm(chunks, shards)));
  }

  void exchange() {
    const bool window = model_.window > 0 && model_.window < plan_.seq;
    if (plan_.cp_exchange == ContextExchange::ring && window)
      report("cp_comm_type", "ring attention does not support a sliding window",
             fmt::format("window = {}, seq = {}", model_.window, plan_.seq), "allgather, or a2a");
    if (plan_.cp_exchange != ContextExchange::all_to_all) return;
    if (!share_heads(model_.own_shape())) return;
    for (const LayerShape& shape : model_.shapes)
      if (!share_heads(shape)) return;
  }

  // Returns false where the rule is broken.
  bool share_heads(const LayerShape& shape) {
    const std::int64_t heads = shape.heads / plan_.tp;
    const std::int64_t kv_heads = (shape.kv_heads + plan_.tp - 1) / plan_.tp;
    if (heads % plan_.cp == 0 && kv_heads % plan_.cp == 0) return true;
    report("cp", "all-to-all context parallelism needs a cp that divides the heads of a tensor-parallel rank",
           fmt::format("heads {}, kv heads {}, cp = {}", heads, kv_heads, plan_.cp),
           numbers_near("cp", plan_.cp, heads, [heads, kv_heads](std::int64_t cp) {
             return heads % cp == 0 && kv_heads % cp == 0;
           }));
    return false;
  }

  const Plan& plan_;
  const Model& model_;
  std::vector<BrokenRule>& broken_;
};

}  // namespace

void add_context_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken) {
  ContextRules(plan, model, broken).check();
}

}  // namespace rehearse
