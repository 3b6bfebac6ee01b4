#include "cli/same_job.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/read_record.h"
#include "result/report_json.h"
#include "scenario/flags.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

// Two builds of one version may compute different numbers.
kernels::Job job_of_program(const std::string& verb, const std::string& device) {
  return {{"version", REHEARSE_VERSION},
          {"build", program_digest(), {}, true},
          {"verb", verb},
          {"--device", device}};
}

std::string in_words(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The flag that sets a field of the plan, else its place in a scenario.
std::string flag_of_field(const std::string& field) {
  const std::string pointer = "/plan/" + field;
  const auto flag = std::ranges::find(scenario_flags(), pointer, &Flag::pointer);
  return flag == scenario_flags().end() ? "plan" + pointer.substr(5) : flag->name;
}

// Adds the model's shape, then the plan's fields.
void add_experiment(kernels::Job& job, const Report& predicted) {
  static const std::set<std::string> kFollow = {"dp", "microbatches"};
  Json report = report_json(predicted, REHEARSE_VERSION);
  report["model"].erase("name");
  report["model"].erase("not_modelled");
  job.push_back({"--model", report["model"].dump(), predicted.model.name});
  for (const auto& [field, value] : report["plan"].items())
    job.push_back({flag_of_field(field), in_words(value), {}, kFollow.contains(field)});
}

// Digest of every kernel with its operands and FLOPs: facts that the model's shape does not determine.
std::string digest_of(const Training& training) {
  std::string text = training.model.squared_relu ? "squared ReLU" : "";
  for (const Block& block : training.work.blocks) {
    text += block.name;
    for (const Tensor& tensor : block.tensors)
      text += fmt::format("{} {} {}\n", tensor.name, tensor.elements, tensor.element_bytes);
    for (const auto* kernels :
         {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
      for (const Kernel& kernel : *kernels)
        text += fmt::format("{} {} {} {}\n", support_of(block, kernel, training.plan.precision).type,
                            flops(kernel), fmt::join(kernel.reads.ids(), ","),
                            fmt::join(kernel.writes.ids(), ","));
  }
  for (const std::vector<Repeated>& part : training.work.parts)
    for (const Repeated& repeated : part) text += fmt::format("{} {}\n", repeated.block, repeated.repeats);
  return digest(text);
}

}  // namespace

kernels::Job job_of(const ExecutedJob& executed) {
  const Training& training = executed.training;
  const LossScaling& scaling = training.loss_scaling;
  kernels::Job job = job_of_program("execute", executed.device);
  add_experiment(job, executed.predicted);
  job.push_back({"--seed", fmt::format("{}", training.seed)});
  job.push_back(
      training.text.empty()
          ? kernels::JobPart{"--data", "none"}
          : kernels::JobPart{"--data",
                             fmt::format("{} bytes, digest {}", training.text.size(), digest(training.text)),
                             executed.data});
  job.push_back({"--iterations", fmt::format("{}", executed.iterations)});
  job.push_back({"--warmup", fmt::format("{}", executed.warmup)});
  job.push_back({"--loss-scale", scaling.loss_scale ? fmt::format("{}", *scaling.loss_scale) : "dynamic"});
  job.push_back({"--initial-loss-scale", fmt::format("{}", scaling.initial_loss_scale)});
  job.push_back({"--min-loss-scale", fmt::format("{}", scaling.min_loss_scale)});
  job.push_back({"--loss-scale-window", fmt::format("{}", scaling.loss_scale_window)});
  job.push_back({"--hysteresis", fmt::format("{}", scaling.hysteresis)});
  job.push_back({"the model's kernels", "digest " + digest_of(training), {}, true});
  job.push_back({"the schedule's ops", "digest " + digest(write_text(training.schedule)), {}, true});
  return job;
}

kernels::Job job_of_messages(const std::string& device, const Jobs& jobs, double seconds) {
  kernels::Job job = job_of_program("calibrate", device);
  std::string messages;
  for (const MessageJob& message : jobs.messages)
    messages += fmt::format("{} {} {} {}\n", static_cast<int>(message.op), message.members, message.bytes,
                            message.nodes);
  job.push_back({"messages", fmt::format("{}, digest {}", jobs.messages.size(), digest(messages))});
  job.push_back({"--seconds", fmt::format("{}", seconds)});
  return job;
}

}  // namespace rehearse
