#include "drawn.h"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

#include "draw_cluster.h"
#include "draw_model.h"
#include "plan/plan.h"

namespace rehearse::properties {

namespace {

using rc::gen::element;
using rc::gen::inRange;

constexpr int kMaxGpus = 64;
constexpr int kMaxOps = 600;  // stages x microbatches

bool one_in(int n) {
  return *inRange(0, n) == n - 1;
}

// Draws the parts of a run one after the other, each so that it fits those before.
class Drawing {
 public:
  Drawn draw() {
    pipeline();
    degrees();
    model();
    hardware();
    batch();
    data_parallel();
    kernels();
    experts();
    graphs();
    return std::move(drawn_);
  }

 private:
  Json& plan() { return drawn_.scenario["plan"]; }

  bool is_hybrid() const { return drawn_.config.contains("hybrid_override_pattern"); }

  void by_chance(const char* key, int one_of) {
    if (one_in(one_of)) plan()[key] = *rc::gen::arbitrary<bool>();
  }

  void pipeline() {
    schedule_ = *rc::gen::elementOf(kScheduleNames);
    of_.pp = *element(1, 2, 3, 4, 6, 8);
    overlap_p2p_ = *rc::gen::arbitrary<bool>();
    if (is_v_shaped(schedule_)) of_.vpp = 2;
    const bool may_interleave = of_.pp >= (overlap_p2p_ ? 2 : 3);
    if (schedule_ == ScheduleName::interleaved && may_interleave) of_.vpp = *inRange(1, 4);
    drawn_.scenario = {{"schema", "rehearse.scenario/1"}};
    plan() = {
        {"pp", of_.pp}, {"vpp", of_.vpp}, {"schedule", to_string(schedule_)}, {"overlap_p2p", overlap_p2p_}};
  }

  // `n` where there are GPUs left for it, else 1.
  int fitting(int n) const { return of_.gpus() * n <= kMaxGpus ? n : 1; }

  void degrees() {
    has_experts_ = one_in(3);
    if (!one_in(8)) {  // else the pipeline alone
      of_.tp = fitting(*element(1, 1, 2, 4, 8));
      of_.cp = fitting(*element(1, 1, 1, 2, 4));
      of_.dp = fitting(*element(1, 2, 3, 4, 8));
    }
    if (has_experts_) {
      const int ranks = of_.tp * of_.cp * of_.dp;
      for (const int ep : {*element(1, 2, 4, 8), 2, 1}) {
        of_.ep = ep;
        if (ranks % ep == 0) break;
      }
      of_.etp = (ranks / of_.ep) % of_.tp == 0 && !one_in(3) ? of_.tp : 1;
    }
    for (const auto& [key, degree] :
         {std::pair{"tp", of_.tp}, {"cp", of_.cp}, {"ep", of_.ep}, {"dp", of_.dp}})
      plan()[key] = degree;
    if (has_experts_) plan()["etp"] = of_.etp;
    if (one_in(5))
      plan()["order"] = *element<std::string>("tp-cp-ep-pp-dp", "tp-dp-cp-ep-pp", "dp-tp-cp-ep-pp");
  }

  void model() {
    const int each = *inRange(1, 4);
    int layers = of_.stages() * each;
    if (one_in(4)) layers = uneven_layers(each);
    seq_ = 2 * of_.tp * of_.cp * 8 * *inRange(1, 5);
    fused_ = of_.cp > 1 || !one_in(4);
    exchange_ = *element<std::string>("p2p", "allgather", "a2a");
    drawn_.config = draw_config(of_, has_experts_, layers, of_.cp == 1 || exchange_ != "p2p");
    layers_ = layers;
    if (of_.cp == 1 && one_in(5)) images();
  }

  // At most half of a sequence.
  void images() {
    drawn_.config["vision_config"] = draw_tower(of_, drawn_.config);
    const int count = *inRange(1, 4);
    plan()["images"] = count;
    plan()["image_tokens"] = std::max(1, seq_ / 2 / count);
    plan()["freeze_tower"] = one_in(2);
    plan()["freeze_projector"] = one_in(2);
  }

  // By a list, or where the embedding stands for a layer.
  int uneven_layers(int each) {
    if (of_.stages() > 1 && one_in(4)) {
      plan()["embedding_as_layer"] = plan()["loss_as_layer"] = true;
      return std::max(1, of_.stages() * (each + 1) - 2);
    }
    if (one_in(5)) {
      plan()["layers_per_stage"] = "auto";
      return std::max(of_.stages() * each - 1, 1);
    }
    std::vector<int> list;
    for (int stage = 0; stage < of_.stages(); ++stage) list.push_back(*inRange(0, 4));
    list[static_cast<std::size_t>(*inRange(0, of_.stages()))] += 1;
    plan()["layers_per_stage"] = list;
    int sum = 0;
    for (const int layers : list) sum += layers;
    return sum;
  }

  void hardware() {
    hardware_ = draw_hardware(of_.gpus());
    add_hardware(drawn_.scenario, hardware_, of_);
    if (drawn_.scenario.contains("stage_nodes") &&
        (plan().contains("order") || plan().value("layers_per_stage", Json()) == "auto"))
      drawn_.scenario.erase("stage_nodes");
    precision_ = *rc::gen::elementOf(hardware_.precisions);
    if (drawn_.scenario.contains("stage_nodes") && (precision_ == "fp8" || precision_ == "fp4"))
      precision_ = "bf16";
    plan()["precision"] = precision_;
  }

  void batch() {
    const int most = std::max(1, kMaxOps / of_.stages());
    int m = *inRange(1, 4 * of_.pp + 2);
    if (schedule_ == ScheduleName::dualpipe_v) m += 2 * of_.pp;
    if (schedule_ == ScheduleName::interleaved && of_.vpp > 1) m = of_.pp * *inRange(1, 5);
    m = std::min(m, std::max(most, 2 * of_.pp));
    if (schedule_ == ScheduleName::interleaved && of_.vpp > 1 && one_in(3))
      plan()["microbatch_group"] = *inRange(of_.pp, m + 1);
    const int micro = *element(1, 1, 2, 4);
    plan()["micro_batch"] = micro;
    plan()["global_batch"] = m * micro * of_.dp;
    plan()["seq"] = seq_;
  }

  void data_parallel() {
    std::string framework = *element<std::string>(
        "megatron-core", "megatron-core", "megatron-2021", "deepspeed-2021", "deepspeed", "fsdp1", "fsdp",
        "torchtitan", "torchtitan", "nanotron", "internevo", "aleph-scaling");
    if (is_hybrid() || (hardware_.is_blackwell() && (precision_ == "fp4" || one_in(2))))
      framework = "megatron-core";
    const bool fsdp = framework == "fsdp1" || framework == "fsdp" || framework == "torchtitan";
    const bool divides_optimizer_alone =
        framework == "nanotron" || framework == "internevo" || framework == "aleph-scaling";
    const int zero = *inRange(0, (of_.pp == 1 && !divides_optimizer_alone) || fsdp ? 4 : 2);
    plan()["framework"] = framework;
    plan()["zero"] = zero;
    plan()["overlap_grad_reduce"] = zero >= 2 || *rc::gen::arbitrary<bool>();
    const int replicas = of_.dp * of_.cp;
    if (zero > 0 && !has_experts_ && replicas > 2 && one_in(3))
      plan()["zero_shard"] = replicas % 2 == 0 ? *element(2, replicas / 2) : replicas;
    if ((zero == 1 || zero == 2) && framework != "internevo") by_chance("overlap_param_gather", 2);
    if (zero == 3) {
      by_chance("reshard_after_forward", 2);
      plan()["prefetch"] = *inRange(0, 4);
    }
    if (zero >= 2 && fsdp) by_chance("reduce_each_microbatch", 2);
    if (one_in(4)) plan()["grad_reduce"] = *element<std::string>("fp32", "bf16");
    if (one_in(3)) plan()["bucket"] = *element<std::string>("100kB", "1MB", "160MB");
    step_and_offload(zero);
  }

  void step_and_offload(int zero) {
    const bool sync = !one_in(4);
    plan()["sync_step"] = sync;
    const bool to_host = hardware_.has_host && !drawn_.scenario.contains("stage_nodes") && one_in(5);
    const bool both = to_host && (zero > 0 || of_.dp == 1);
    if (both && *rc::gen::arbitrary<bool>()) {
      plan()["offload"] = "optimizer";
      return;
    }
    if (to_host && (of_.pp > 1 || schedule_ == ScheduleName::gpipe)) plan()["offload"] = "activations";
    if (sync && one_in(2)) plan()["clip_grad"] = 1.0;
  }

  std::string recipe_of_precision() {
    if (precision_ == "fp8") return "fp8-weights";
    if (precision_ != "bf16") return "megatron";
    return plan()["zero"] <= 1 && *rc::gen::arbitrary<bool>()
               ? *element<std::string>("deepspeed-bf16", "nanotron", "autocast")
               : "bf16";
  }

  void kernels() {
    plan()["cp_comm_type"] = exchange_;
    plan()["fused_attention"] = fused_;
    by_chance("fused_cross_entropy", 2);
    const bool of_core = plan().value("framework", "megatron-core") == "megatron-core";
    if (of_core && plan().value("fused_cross_entropy", true) && one_in(2))
      plan()["cross_entropy_fusion_impl"] = *element<std::string>("te", "te-in-place");
    if (one_in(5)) plan()["train_metrics"] = 2;
    for (const char* kernel :
         {"fused_softmax", "fused_norm", "fused_rotary", "fused_activation", "fused_permute", "fused_router",
          "fused_accumulation", "fused_adam", "fused_step"})
      by_chance(kernel, 4);
    const bool sequence = of_.tp > 1 && (has_experts_ || !one_in(3));
    plan()["sequence_parallel"] = sequence;
    if (sequence) by_chance("tp_comm_overlap", 2);
    const bool copies =
        plan().value("framework", "").starts_with("fsdp") || plan()["framework"] == "torchtitan";
    if (plan().value("tp_comm_overlap", false) && !copies && one_in(2)) plan()["tp_comm_fc2_sms"] = 16;
    by_chance("tp_backward_overlap", 3);
    by_chance("scatter_gather", 2);
    by_chance("cuda_graph", 3);
    by_chance("one_queue", 4);
    if (precision_ != "fp32" && one_in(3)) {
      const std::string own = recipe_of_precision();
      plan()["recipe"] = *element<std::string>("megatron", "zero", "sagemaker", "fsdp", own, own);
    }
    const std::string recipe = plan().value("recipe", "");
    fp8(recipe);
    ends_in_bf16();
    recompute();
    if (one_in(10)) launch_blocking();
  }

  void ends_in_bf16() {
    const bool fits =
        (precision_ == "fp8" || precision_ == "fp4") && plan().value("framework", "") == "megatron-core";
    if (!fits || !one_in(3)) return;
    plan()["bf16_first_layers"] = *inRange(0, 3);
    plan()["bf16_last_layers"] = *inRange(0, 3);
  }

  void fp8(const std::string& recipe) {
    if (precision_ != "fp8") return;
    const std::string framework = plan().value("framework", "");
    if (framework == "torchtitan")
      plan()["fp8_scaling"] = *element<std::string>("tensor", "tensor-gathered", "row");
    if (framework == "megatron-core")
      plan()["fp8_scaling"] = hardware_.is_blackwell()
                                  ? *element<std::string>("tensor", "current", "mx", "mx")
                                  : *element<std::string>("tensor", "current");
    if (framework == "megatron-core") plan()["fp8_output_proj"] = one_in(2);
    if (framework == "megatron-core" && hardware_.is_blackwell() && fused_ && of_.cp == 1)
      plan()["fp8_dot_product_attention"] = one_in(2);
    const bool held = recipe == "zero" || recipe == "fp8-weights";
    if (held && plan().value("fp8_scaling", "") != "mx" && one_in(2)) plan()["fp8_weight_copies"] = 1;
  }

  // Where all that may overlap can be told not to.
  void launch_blocking() {
    if (plan().value("zero", 0) >= 2 || plan().contains("offload") || (of_.cp > 1 && exchange_ == "p2p"))
      return;
    for (const char* overlap : {"overlap_grad_reduce", "overlap_p2p", "overlap_param_gather",
                                "tp_comm_overlap", "tp_backward_overlap", "cuda_graph"})
      plan()[overlap] = false;
    plan().erase("tp_comm_fc2_sms");
    plan()["launch_blocking"] = true;
  }

  void recompute() {
    const std::string form = *element<std::string>("none", "selective", "op", "full");
    plan()["recompute"] = form;
    if (form == "full") {
      plan()["recompute_method"] = *element<std::string>("uniform", "block");
      plan()["recompute_num_layers"] = *inRange(1, layers_ + 1);
    }
    if (form == "selective" && one_in(2)) {
      std::vector<std::string> modules = {"core_attn", "layernorm"};
      if (has_experts_) modules.emplace_back(*element<std::string>("moe_act", "moe"));
      if (!has_experts_) modules.emplace_back("mlp");
      if (drawn_.config.contains("kv_lora_rank")) modules.emplace_back("mla_up_proj");
      modules.erase(modules.begin() + *inRange(0, static_cast<int>(modules.size())));
      plan()["recompute_modules"] = modules;
    }
  }

  void experts() {
    if (!has_experts_) return;
    const bool within_dp = of_.dp % of_.ep == 0 && of_.etp == of_.tp;
    const bool pairs = schedule_ == ScheduleName::dualpipe_v ||
                       (of_.vpp > 1 && schedule_ == ScheduleName::interleaved) ||
                       (of_.pp == 1 && schedule_ == ScheduleName::one_f_one_b);
    const bool reruns =
        plan().value("recompute", "") == "full" ||
        plan().value("recompute_modules", Json::array()).dump().find("\"moe\"") != std::string::npos;
    if (pairs && !reruns && !is_hybrid() && !plan().value("launch_blocking", false))
      by_chance("overlap_experts", 2);
    fused_experts();
    if (of_.ep > 1 && of_.etp == 1 && one_in(2)) {
      plan()["moe_dispatcher"] = *element<std::string>("deepep", "hybridep");
      if (one_in(2)) plan()["moe_dispatcher_sms"] = 16;
      if (one_in(2)) plan()["moe_imbalance"] = 1.3;
      return;
    }
    if (one_in(2) && !plan().value("fused_experts", false))
      plan()["core_release"] = within_dp && one_in(2) ? 9 : *element(10, 12, 13);
    if (!one_in(2)) return;
    if (*rc::gen::arbitrary<bool>())
      plan()["moe_imbalance"] = *element(1.0, 1.3, 2.0);
    else
      plan()["moe_capacity"] = *element(1.0, 1.25);
  }

  // Which recompute leaves as they are.
  void fused_experts() {
    if (plan().value("fp8_scaling", "") != "mx" || of_.etp > 1 || is_hybrid()) return;
    plan()["fused_experts"] = true;
    plan()["recompute"] = "none";
    for (const char* key : {"recompute_method", "recompute_num_layers", "recompute_modules"})
      plan().erase(key);
  }

  // Graphs of parts of each layer in place of whole passes.
  void graphs() {
    const std::string form = plan().value("recompute", "");
    if (!plan().value("cuda_graph", false) || !one_in(2) || form == "full" || form == "op" ||
        plan().value("offload", "") == "activations")
      return;
    std::vector<std::string> modules = {"attn"};
    if (is_hybrid() && one_in(2)) modules.emplace_back("mamba");
    const bool padded = plan().contains("moe_capacity") && !plan().value("overlap_experts", false);
    const bool reruns =
        plan().value("recompute_modules", Json::array()).dump().find("\"moe\"") != std::string::npos;
    if (!has_experts_) {
      modules.emplace_back("mlp");
    } else if (padded) {
      modules.emplace_back("moe");
    } else if (!reruns) {
      modules.emplace_back("moe_router");
      if (one_in(2)) modules.emplace_back("moe_preprocess");
    }
    plan()["cuda_graph_modules"] = modules;
  }

  Drawn drawn_;
  Degrees of_;
  ScheduleName schedule_ = ScheduleName::one_f_one_b;
  bool overlap_p2p_ = false, has_experts_ = false, fused_ = true;
  int seq_ = 0, layers_ = 0;
  std::string precision_, exchange_;
  Hardware hardware_;
};

}  // namespace

void showValue(const Drawn& drawn, std::ostream& out) {
  out << "model: " << drawn.config.dump() << "\nscenario: " << drawn.scenario.dump() << '\n';
}

rc::Gen<Drawn> any_run() {
  return rc::gen::resize(rc::kNominalSize, rc::gen::exec([] { return Drawing().draw(); }));
}

}  // namespace rehearse::properties
