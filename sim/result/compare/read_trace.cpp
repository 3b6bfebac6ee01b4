#include "result/compare/read_trace.h"

#include <array>
#include <cstdio>
#include <limits>
#include <map>

#include "schedule/parse.h"

namespace rehearse {

namespace {

constexpr int kMaxInt32 = std::numeric_limits<int>::max();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr int kMaxPipelineRanks = 1 << 16;
constexpr double kMicro = 1e-6;

struct TraceRank {
  int pipeline_rank = 0;
  RankOps ops;
  std::vector<Span> spans;
};

class TraceReader {
 public:
  TraceReader(const Json& trace, std::string file) : trace_(trace), file_(std::move(file)) {}

  RecordedRun read() {
    RecordedRun run;
    const JsonReader top(trace_, file_);
    if (!top.has("otherData") || !top.object("otherData").has("report"))
      top.fail("otherData", "only traces that --trace writes can be compared", "without \"report\"", "");
    run.report = top.object("otherData").value("report");
    const std::vector<JsonReader> events = top.objects("traceEvents");
    for (const JsonReader& event : events) {
      const std::string phase = event.text_or("ph", "");
      if (phase == "M" && event.text_or("name", "") == "process_name") name_rank(event);
      if (phase == "X" && event.text_or("cat", "") == "kernel") add_slice(event);
    }
    fill(run);
    return run;
  }

 private:
  static int integer(const JsonReader& reader, const char* key) {
    return static_cast<int>(reader.integer(key, 0, kMaxInt32));
  }

  // "rank 5 (pp 1)"
  void name_rank(const JsonReader& event) {
    const std::string name = event.object("args").text("name");
    int rank = 0, pipeline_rank = 0;
    if (std::sscanf(name.c_str(), "rank %d (pp %d)", &rank, &pipeline_rank) != 2 || pipeline_rank < 0 ||
        pipeline_rank >= kMaxPipelineRanks)
      event.fail("args/name", "must name a rank and its pipeline rank", "found \"" + name + "\"",
                 "rank 0 (pp 0)");
    order_.push_back(integer(event, "pid"));
    ranks_[order_.back()].pipeline_rank = pipeline_rank;
  }

  void add_slice(const JsonReader& event) {
    const auto rank = ranks_.find(integer(event, "pid"));
    if (rank == ranks_.end()) event.fail("pid", "must be of a process that was named", "", "");
    const std::string name = event.text("name");
    const JsonReader args = event.object("args");
    Op op = parse_op(token_of(name), {file_, "traceEvents: " + name}, false);
    op.microbatch = integer(args, "microbatch");
    op.part = static_cast<std::uint16_t>(args.integer("part", 0, 65534));
    op.parts = static_cast<std::uint16_t>(args.integer("parts", op.part + 1, 65535));
    op.stream = static_cast<Stream>(args.integer("stream", 1, kStreams) - 1);
    rank->second.ops.add(op);
    const double begin = event.number("ts", 0, kMax);
    rank->second.spans.push_back({begin * kMicro, (begin + event.number("dur", 0, kMax)) * kMicro});
  }

  // "PP:2F0", "ncclDevKernel_AllReduce 0REDUCE_GRAD.2" -> "2F0", "0REDUCE_GRAD"
  static std::string token_of(const std::string& name) {
    const std::size_t begin = name.find_last_of(": ");
    const std::string token = begin == std::string::npos ? name : name.substr(begin + 1);
    return token.substr(0, token.find('.'));
  }

  void fill(RecordedRun& run) {
    int stages = 0, microbatches = 0, pp = 0;
    for (const int pid : order_) {
      const TraceRank& rank = ranks_.at(pid);
      pp = std::max(pp, rank.pipeline_rank + 1);
      for (const Op& op : rank.ops.ops()) {
        stages = std::max(stages, op.stage + 1);
        microbatches = std::max(microbatches, op.microbatch + 1);
      }
      run.timeline.ranks.push_back({{pid, rank.pipeline_rank}, rank.spans});
    }
    if (stages == 0)
      throw InputError({file_, "/traceEvents", "a trace to compare must contain ops", "none found", ""});
    run.schedule.pp = pp;
    run.schedule.stages = stages;
    run.schedule.microbatches = microbatches;
    run.schedule.ranks.resize(static_cast<std::size_t>(pp));
    for (const int pid : order_)
      run.schedule.ranks[static_cast<std::size_t>(ranks_.at(pid).pipeline_rank)] = ranks_.at(pid).ops;
    require_fits(run.timeline, run.schedule);
  }

  const Json& trace_;
  std::string file_;
  std::vector<int> order_;  // processes as they stand in the trace
  std::map<int, TraceRank> ranks_;
};

template <typename Enum, std::size_t N>
Enum named(const JsonReader& reader, const char* key, const std::array<Enum, N>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names[to_string(value)] = value;
  return reader.choice(key, names);
}

Plan read_plan_head(const JsonReader& plan) {
  const auto degree = [&](const char* key) { return static_cast<int>(plan.integer(key, 1, kMaxInt32)); };
  Plan head;
  head.tp = degree("tp");
  head.pp = degree("pp");
  head.vpp = degree("vpp");
  head.dp = degree("dp");
  head.cp = degree("cp");
  head.ep = degree("ep");
  head.micro_batch = plan.integer("micro_batch", 1, kMaxInt32);
  head.global_batch = plan.integer("global_batch", 1, std::int64_t{1} << 40);
  head.seq = plan.integer("seq", 1, std::int64_t{1} << 40);
  head.precision = named(plan, "precision", kPrecisions);
  head.recompute = named(plan, "recompute", kRecomputes);
  return head;
}

}  // namespace

bool is_trace(const Json& json) {
  return json.is_object() && json.contains("traceEvents");
}

RecordedRun read_trace(const Json& trace, const std::string& file) {
  return TraceReader(trace, file).read();
}

Report read_report_head(const JsonReader& report) {
  Report head;
  head.plan = read_plan_head(report.object("plan"));
  head.facts.schedule_name = report.object("plan").text("schedule");
  head.model.name = report.object("model").text("name");
  const JsonReader cluster = report.object("cluster");
  head.facts.cluster_name = cluster.text("name");
  head.facts.gpu_name = cluster.text("gpu");
  head.facts.gpus = static_cast<int>(cluster.integer("gpus", 1, kMaxInt32));
  head.facts.source = report.text("source");
  head.facts.engine = report.text("engine");
  head.step_time_s = report.number("step_time_s", physical::kStepTime);
  const JsonReader bubble = report.object("bubble_fraction");
  head.bubble_mean = bubble.number("mean", 0, 1);
  head.bubble_worst = bubble.number("worst", 0, 1);
  head.bubble_worst_rank = static_cast<int>(bubble.integer("worst_rank", 0, kMaxInt32));
  head.bubble_ideal = report.number("bubble_fraction_ideal", 0, 1);
  return head;
}

}  // namespace rehearse
