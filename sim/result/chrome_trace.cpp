#include "result/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>

#include "memory/memory.h"
#include "plan/messages.h"
#include "plan/sharding.h"
#include "result/activation_curve.h"
#include "result/idle.h"
#include "result/report_json.h"
#include "schedule/op_messages.h"

namespace rehearse {

namespace {

// CUDA streams are numbered from 1 here. A stream's waits are on the track with this offset.
constexpr int kWaitTracks = 10;

constexpr std::array<const char*, kStreams> kTrackNames = {
    "compute",     "pp send forward", "pp recv forward", "pp send backward", "pp recv backward",
    "dp gradient", "dp parameter",    "to host",         "from host"};

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

// Microseconds with three decimals.
std::string micros(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Kineto's names of NCCL's kernel and its collective.
struct KinetoNames {
  const char* kernel;
  const char* collective;
};
KinetoNames kineto_names(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_gather:
      return {"AllGather", "allgather"};
    case CollectiveOp::reduce_scatter:
      return {"ReduceScatter", "reduce_scatter"};
    case CollectiveOp::broadcast:
      return {"Broadcast", "broadcast"};
    case CollectiveOp::all_reduce:
      return {"AllReduce", "allreduce"};
    default:
      return {"SendRecv", ""};
  }
}

std::string slice_name(const Op& op, const std::vector<Collective>& sent) {
  const std::string name = to_string(op);
  if (is_compute(op.kind)) return "PP:" + name;
  if (op.kind == OpKind::step) return "optimizer " + name;
  if (is_host_copy(op.kind)) return (op.stream == Stream::to_host ? "Memcpy DtoH " : "Memcpy HtoD ") + name;
  if (sent.empty()) return name;
  return fmt::format("ncclDevKernel_{} {}", kineto_names(sent.front().op).kernel, name);
}

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Schedule& schedule, const Report& report, const Work& work)
      : out_(out),
        schedule_(schedule),
        report_(report),
        activations_(stage_bytes(work)),
        grid_(report.plan),
        groups_(report.plan),
        sizes_(message_sizes(work, report.model, report.plan, offloaded_bytes(work))) {}

  void write(const Timeline& timeline) {
    head();
    for (std::size_t i = 0; i < timeline.ranks.size(); ++i) rank(timeline.ranks[i], i);
    out_ << "\n]}\n";
  }

 private:
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    buffer_.clear();
    buffer_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    out_ << buffer_;
  }

  void head() {
    const RunFacts& facts = report_.facts;
    out_ << fmt::format(
        R"({{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":{},"totalGlobalMem":{:.0f}}}],)"
        R"("distributedInfo":{{"backend":"nccl","rank":0,"world_size":{}}},"displayTimeUnit":"ms",)"
        R"("baseTimeNanoseconds":0,"traceName":{},"otherData":{{"report":{}}},"traceEvents":[)",
        quoted(facts.gpu_name), facts.gpu_memory_bytes, facts.gpus,
        quoted(report_.model.name + " on " + facts.cluster_name), report_text());
  }

  // Removes the version: readers of the trace do not depend on it.
  std::string report_text() const {
    nlohmann::ordered_json report = report_json(report_, "");
    report.erase("version");
    return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  void metadata(int pid, std::string_view what, const std::string& args) {
    event(R"({{"ph":"M","name":"{}","pid":{},"tid":0,"args":{{{}}}}})", what, pid, args);
  }

  void name_track(int pid, int tid, const std::string& name) {
    event(R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":"{2}"}}}})", pid, tid, name);
    event(R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", pid,
          tid);
  }

  void rank(const TimelineRank& rank, std::size_t index) {
    const Instance& instance = rank.instance;
    const RankOps& ops = schedule_.ranks[static_cast<std::size_t>(instance.pipeline_rank)];
    Coordinates first = grid_.coordinates(instance.rank);
    first[static_cast<std::size_t>(Axis::pp)] = 0;
    replica_ = grid_.rank(first);
    metadata(instance.rank, "process_name",
             fmt::format("\"name\":\"rank {} (pp {})\"", instance.rank, instance.pipeline_rank));
    metadata(instance.rank, "process_sort_index", fmt::format(R"("sort_index":{})", index));
    for (int stream = 0; stream < kStreams; ++stream)
      if (std::any_of(ops.ops().begin(), ops.ops().end(),
                      [&](const Op& op) { return op.stream == static_cast<Stream>(stream); }))
        name_track(instance.rank, stream + 1, kTrackNames[static_cast<std::size_t>(stream)]);
    slices(rank, ops);
    waits(rank, ops);
    for (const MemoryPoint& point : activation_curve(rank, ops, activations_))
      event(R"({{"ph":"C","name":"activation memory","pid":{},"ts":{},"args":{{"bytes":{:.0f}}}}})",
            instance.rank, micros(nanoseconds(point.time_s)), point.bytes);
  }

  // A stream runs one op after another. A begin before the end of its predecessor is rounding or jitter.
  void slices(const TimelineRank& rank, const RankOps& ops) {
    std::array<std::int64_t, kStreams> covered{};
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      std::int64_t& free = covered[static_cast<std::size_t>(op.stream)];
      const std::int64_t begin = std::max(free, nanoseconds(rank.spans[i].begin));
      const std::int64_t end = std::max(begin, nanoseconds(rank.spans[i].end));
      free = end;
      const std::vector<Collective> sent = messages_by_group(sizes_, report_.plan, groups_, ops, i);
      slice(rank.instance.rank, op, sent, begin, end);
      if (is_send(op.kind) || is_receive(op.kind)) flow(rank.instance.rank, op, begin);
    }
  }

  void slice(int pid, const Op& op, const std::vector<Collective>& sent, std::int64_t begin,
             std::int64_t end) {
    const int tid = static_cast<int>(op.stream) + 1;
    event(R"({{"ph":"X","cat":"kernel","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":)"
          R"({{"stream":{},"device":0,"stage":{},"microbatch":{},"part":{},"parts":{}{}}}}})",
          slice_name(op, sent), pid, tid, micros(begin), micros(end - begin), tid, op.stage, op.microbatch,
          op.part, op.parts, collective_args(op, sent));
  }

  // Arguments of the message to the first group. Experts with replicas of their own send a second message.
  std::string collective_args(const Op& op, const std::vector<Collective>& sent) const {
    if (sent.empty() || is_host_copy(op.kind)) return "";
    std::string args = fmt::format(",{}", message_args(op, sent.front())), further;
    for (const Collective& message : std::span(sent).subspan(1))
      further += fmt::format("{}{{{}}}", further.empty() ? "" : ",", message_args(op, message));
    if (!further.empty()) args += fmt::format(R"(,"Further messages":[{}])", further);
    return args;
  }

  // Kineto's names, counted in elements of one rank's buffers.
  std::string message_args(const Op& op, const Collective& sent) const {
    const Plan& plan = report_.plan;
    if (sent.group == CommGroup::pipeline) {
      const double values = sent.bytes / (plan.precision == Precision::fp32 ? 4 : 2);
      return kineto_args(is_send(op.kind) ? "send" : "recv", "pp", 2, values, values, dtype(plan.precision)) +
             fmt::format(R"(,"bytes":{:.0f})", sent.bytes);
    }
    const bool gathers = op.kind == OpKind::unshard;
    const double values = sent.bytes / (gathers ? parameter_bytes(plan) : gradient_wire_bytes(plan));
    const int members = groups_.size(sent.group);
    const char* const gathered = parameter_bytes(plan) == 1 ? "Byte" : dtype(plan.precision);
    return kineto_args(kineto_names(sent.op).collective, group_name(sent.group), members,
                       sent.op == CollectiveOp::all_gather ? values / members : values,
                       sent.op == CollectiveOp::reduce_scatter ? values / members : values,
                       gathers ? gathered : dtype(plan.grad_reduce));
  }

  static const char* group_name(CommGroup group) {
    if (group == CommGroup::embedding) return "embedding";
    return group == CommGroup::expert_shards ? "expert dp" : "dp";
  }

  static std::string kineto_args(const char* name, const char* group, int size, double in, double out,
                                 const char* type) {
    return fmt::format(
        R"("Collective name":"{}","Process Group Name":"{}","Group size":{},"In msg nelems":{:.0f},)"
        R"("Out msg nelems":{:.0f},"dtype":"{}")",
        name, group, size, in, out, type);
  }

  static const char* dtype(Precision precision) {
    return precision == Precision::fp32 ? "Float" : precision == Precision::fp16 ? "Half" : "BFloat16";
  }

  // The same number at both ends: replica, direction, receiving stage, microbatch.
  std::int64_t flow_id(const Op& op) const {
    const bool forward = op.kind == OpKind::send_forward || op.kind == OpKind::recv_forward;
    const int to = is_receive(op.kind) ? op.stage : forward ? op.stage + 1 : op.stage - 1;
    const std::int64_t row = (replica_ * 2 + (forward ? 0 : 1)) * schedule_.stages + to;
    return row * schedule_.microbatches + op.microbatch + 1;
  }

  void flow(int pid, const Op& op, std::int64_t at) {
    event(R"({{"ph":"{}","cat":"pp","name":"pp","id":{},"pid":{},"tid":{},"ts":{}{}}})",
          is_send(op.kind) ? "s" : "f", flow_id(op), pid, static_cast<int>(op.stream) + 1, micros(at),
          is_send(op.kind) ? "" : R"(,"bp":"e")");
  }

  void waits(const TimelineRank& rank, const RankOps& ops) {
    std::array<std::int64_t, kStreams> covered;
    covered.fill(-1);
    for (Gap& gap : compute_gaps(rank, ops, report_.step_time_s, report_.plan.one_queue)) {
      std::sort(gap.blockers.begin(), gap.blockers.end(),
                [](const Blocker& a, const Blocker& b) { return a.op < b.op; });
      for (const Blocker& blocker : gap.blockers) wait(rank, ops, gap, blocker, covered);
    }
  }

  void wait(const TimelineRank& rank, const RankOps& ops, const Gap& gap, const Blocker& blocker,
            std::array<std::int64_t, kStreams>& covered) {
    const Op& op = ops[static_cast<std::size_t>(blocker.op)];
    const Span& span = rank.spans[static_cast<std::size_t>(blocker.op)];
    std::int64_t& free = covered[static_cast<std::size_t>(op.stream)];
    const std::int64_t begin = std::max(free, nanoseconds(std::max(gap.begin, blocker.ready)));
    const std::int64_t end = nanoseconds(std::min(gap.end, span.begin));
    if (end <= begin) return;
    const int tid = static_cast<int>(op.stream) + 1 + kWaitTracks;
    const int pid = rank.instance.rank;
    if (free < 0)
      name_track(pid, tid, fmt::format("{} wait", kTrackNames[static_cast<std::size_t>(op.stream)]));
    free = end;
    event(R"({{"ph":"X","cat":"wait","name":"wait {}","pid":{},"tid":{},"ts":{},"dur":{},"args":)"
          R"({{"stage":{},"microbatch":{},"part":{}}}}})",
          to_string(op), pid, tid, micros(begin), micros(end - begin), op.stage, op.microbatch, op.part);
  }

  std::ostream& out_;
  const Schedule& schedule_;
  const Report& report_;
  std::vector<StageBytes> activations_;
  RankGrid grid_;
  CommGroups groups_;
  MessageSizes sizes_;
  std::int64_t replica_ = 0;  // of the rank being written: the first rank of its pipeline
  std::string buffer_;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(std::ostream& out, const Timeline& timeline, const Schedule& schedule,
                        const Report& report, const Work& work) {
  require_fits(timeline, schedule);
  TraceWriter(out, schedule, report, work).write(timeline);
}

}  // namespace rehearse
