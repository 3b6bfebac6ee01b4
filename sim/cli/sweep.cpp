#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/interruption.h"
#include "base/progress.h"
#include "base/quantity.h"
#include "base/say.h"
#include "cli/command.h"
#include "cli/execute_row.h"
#include "cli/file_kind.h"
#include "cli/jobs.h"
#include "cli/output.h"
#include "cli/own_store.h"
#include "cli/png.h"
#include "cli/sweep_row.h"
#include "cli/sweep_table.h"
#include "cli/verbs.h"
#include "cli/verdict.h"
#include "run/size.h"
#include "scenario/scenario.h"
#include "scenario/swept.h"
#include "sweep/export.h"
#include "sweep/plot/sweep_page.h"
#include "sweep/run_points.h"
#include "sweep/shard.h"

namespace rehearse {

namespace {

struct Output {
  const char* flag;
  bool is_wanted = false;
  std::string file = {};
  // Where the rows go; "" where they are not requested.
  std::string place() const { return is_wanted && file.empty() ? "-" : file; }
};

struct SweepOptions {
  GivenFlags given;
  std::vector<std::string> merged;
  std::string store, shard;
  Output csv{"--csv"}, jsonl{"--jsonl"};
  ExecuteRows execute;
  std::string svg, png, html, plot;
  bool resume = false;
  int jobs = 0;
  double most_seconds = std::numeric_limits<double>::infinity();  // of a row
};

// `--csv scenario.json` means the scenario: output never goes to a *.json.
void take_back_scenario(SweepOptions& options) {
  for (Output* output : {&options.csv, &options.jsonl}) {
    if (!output->file.ends_with(".json")) continue;
    if (!options.given.file.empty()) {
      const char* ending = output == &options.csv ? ".csv" : ".jsonl";
      throw InputError({"command line", output->flag, "rows are not written over a *.json", output->file,
                        output->file.substr(0, output->file.size() - 5) + ending});
    }
    options.given.file = std::exchange(output->file, "");
  }
}

Store open_store(const SweepOptions& options, const std::string& own, const Json& identity,
                 const Grid& grid) {
  if (!own.empty()) return {own, identity, grid, true};
  return {options.store, identity, grid, options.resume || !options.merged.empty()};
}

// SimGrid runs once a process, and only a process can be killed.
bool needs_processes(const Swept& swept, const SweepOptions& options) {
  if (options.execute.wanted() || std::isfinite(options.most_seconds)) return true;
  for (const SweptField& field : swept.grid.fields)
    if (field.pointer == "/engine") return true;
  return swept.base.json.value("engine", Json("simgrid")) != Json("reference");
}

// Reads the inputs of the first point. Forked children then have them, and a stream can be read only once.
void read_ahead(const Swept& swept, Inputs& inputs) {
  Replaced replaced;
  replaced.inputs = &inputs;
  try {
    read_scenario(source_at(swept, 0), replaced);
  } catch (const std::exception&) {  // its row will say so
  }
}

// A row computed from older files, or by another build, is stale.
void say_stale(int rows, const char* what, const Store& store) {
  if (rows == 0) return;
  const std::vector<std::string> changed(store.changed().begin(), store.changed().end());
  say(stderr, "{} stale rows {}: changed since they ran: {}\n", rows, what, join(changed));
}

void merge(const SweepOptions& options, Store& store) {
  for (const std::string& other : options.merged) {
    const Store::Merged merged = store.merge(other);
    if (merged.is_self)
      say(stderr, "{}: is the store itself and is skipped\n", other);
    else
      say(stderr, "{}: {} rows merged\n", other, merged.taken);
    say_stale(merged.stale, "are not merged", store);
  }
}

// A row's report, its SQLite record and its process, beside the simulation: 100 rows of 8 ranks and 8
// microbatches on one core of an Intel Xeon at 2.1 GHz (tests/bench/size_bench.cpp). The record takes 12 kB
// on the disk.
constexpr double kRowSeconds = 0.02, kRowBytes = 12.4e3;

// Refuses a sweep whose rows take longer than a run may. The first point, where it is legal, stands for all.
void require_affordable(const SweepOptions& options, const Swept& swept, Inputs& inputs, Point rows) {
  if (options.given.large || options.execute.wanted()) return;
  double row_s = kRowSeconds;
  try {
    Replaced replaced;
    replaced.inputs = &inputs;
    replaced.without_search = true;
    row_s += expected_size(read_scenario(source_at(swept, 0), replaced).experiment).seconds;
  } catch (const std::exception&) {  // its row will say so
  }
  const int jobs = jobs_or_cores(options.jobs);
  const double most = kMaxRunSeconds / row_s * jobs, seconds = static_cast<double>(rows) * row_s / jobs;
  if (seconds <= kMaxRunSeconds) return;
  std::string factors;
  for (const SweptField& field : swept.grid.fields)
    factors += fmt::format("{}{} {}", factors.empty() ? "" : " x ", field.values.size(), field.name);
  throw InputError({"command line", "sweep",
                    fmt::format("a sweep takes at most {:.0f} min at a time", kMaxRunSeconds / 60),
                    fmt::format("about {:.3g} h and {} of disk: {} rows ({}) of about {} on {} core{}",
                                seconds / 3600, format_bytes(kRowBytes * static_cast<double>(rows)), rows,
                                factors, format_seconds(row_s), jobs, jobs == 1 ? "" : "s"),
                    fmt::format("{:.0f} rows, --shard 1/{:.0f}, or --large", std::floor(most),
                                std::ceil(static_cast<double>(rows) / std::max(1.0, std::floor(most))))});
}

void run_left(const SweepOptions& options, const Swept& swept, const Shard& shard, Inputs& inputs,
              Store& store) {
  const std::set<Point> known = store.known();
  const PointsLeft left = points_left(swept.grid.size(), shard, known);
  if (shard.count > 1) say(stderr, "shard {}/{}\n", shard.index, shard.count);
  if (!known.empty()) say(stderr, "{} rows are already known, {} remain\n", known.size(), left.count);
  require_affordable(options, swept, inputs, left.count);
  const int jobs = options.execute.wanted() ? 1 : jobs_or_cores(options.jobs);
  Progress progress(static_cast<std::size_t>(left.count));
  const Evaluate evaluate = [&](Point point) {
    const ScenarioSource source = source_at(swept, point);
    return with_executed(evaluate_row(source, inputs), source, options.execute);
  };
  const Deliver deliver = [&](Point point, const Row& row) {
    store.put(point, row);
    progress.row_done();
  };
  note_interruption();
  try {
    if (needs_processes(swept, options))
      run_in_processes(left.next, evaluate, jobs, is_interrupted, deliver, options.most_seconds);
    else
      run_in_threads(left.next, evaluate, jobs, is_interrupted, deliver);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("{}; the finished rows are kept: continue with --resume", error.what()));
  }
}

void write_rows(const SweepOptions& options, const Store& store, const Grid& grid) {
  const auto write = [&](const Output& output, const auto& rows) {
    if (output.is_wanted) write_file(output.place(), [&](std::ostream& out) { rows(out, store, grid); });
  };
  write(options.csv, write_csv);
  write(options.jsonl, write_jsonl);
  if (!options.csv.is_wanted && !options.jsonl.is_wanted) say("{}", sweep_table(store, grid));
}

std::optional<plot::PlotKind> plot_kind(const std::string& name) {
  for (const plot::PlotKind kind : plot::plot_kinds())
    if (plot::to_string(kind) == name) return kind;
  return std::nullopt;
}

// Checked before the rows run.
void require_drawable(const SweepOptions& options, const Grid& grid) {
  if (options.svg.empty() && options.png.empty() && options.html.empty()) return;
  plot::require_fields(grid, plot_kind(options.plot));
  if (!options.png.empty()) require_png_writer();
}

void draw_rows(const SweepOptions& options, const Store& store, const Grid& grid) {
  if (options.svg.empty() && options.png.empty() && options.html.empty()) return;
  const plot::PlotRows rows = plot::read_rows(store, grid);
  const std::optional<plot::PlotKind> kind = plot_kind(options.plot);
  const std::string picture = plot::draw_plot(grid, rows, kind);
  if (!options.svg.empty()) write_file(options.svg, [&](std::ostream& out) { out << picture; });
  if (!options.png.empty()) write_png(options.png, picture);
  if (options.html.empty()) return;
  const std::string page = plot::write_sweep_page(grid, rows, kind, command_line());
  write_file(options.html, [&](std::ostream& out) { out << page; });
}

// The exit code, as of the verb that runs one scenario: failure where a row failed, else an error only where
// no row is done.
int exit_code_of(const Store& store) {
  std::map<RowState, int> rows;
  std::string reason, failure;
  store.each([&](Point, const Row& row) {
    ++rows[row.state];
    if (failure.empty() && row.state == RowState::failed) failure = row.reason;
    if (reason.empty()) reason = row.reason;
  });
  say(stderr, "{} done, {} illegal, {} do not fit, {} without calibration, {} failed\n", rows[RowState::done],
      rows[RowState::illegal], rows[RowState::does_not_fit], rows[RowState::missing], rows[RowState::failed]);
  if (rows[RowState::failed] > 0) {
    say(stderr, "rehearse: {} rows failed, which --resume tries again; the first: {}\n",
        rows[RowState::failed], failure);
    return kFailure;
  }
  if (rows[RowState::done] > 0) return kDone;
  if (!reason.empty()) say(stderr, "rehearse: no point can run; the first: {}\n", reason);
  if (rows[RowState::does_not_fit] > 0) return kDoesNotFit;
  if (rows[RowState::missing] > 0) return kMissing;
  return kInvalidInput;
}

int sweep(SweepOptions& options) {
  take_back_scenario(options);
  const Swept swept = read_swept(options.given);
  require_drawable(options, swept.grid);
  const std::vector<std::string> outputs = {options.csv.place(), options.jsonl.place(), options.svg,
                                            options.png, options.html};
  std::vector<std::string> files = outputs;
  files.push_back(options.store);
  require_apart(files);
  require_writable(outputs);
  const Shard shard = options.shard.empty()
                          ? Shard{}
                          : parse_shard(options.shard, [](const char* name) { return std::getenv(name); });
  Inputs inputs;
  say_omitted(source_at(swept, 0));
  read_ahead(swept, inputs);
  if (!options.resume && options.merged.empty())
    require_affordable(options, swept, inputs, (swept.grid.size() + shard.count - 1) / shard.count);
  Json identity = identity_of(swept);
  if (options.execute.wanted())
    identity["execute"] = {options.execute.device, options.execute.warmup, options.execute.iterations};
  const std::unique_ptr<OwnStore> own =
      options.store.empty() ? std::make_unique<OwnStore>(identity, shard, options.resume) : nullptr;
  Store store = open_store(options, own ? own->path() : "", identity, swept.grid);
  say_stale(store.dropped(), "run again", store);
  merge(options, store);
  run_left(options, swept, shard, inputs, store);
  write_rows(options, store, swept.grid);
  draw_rows(options, store, swept.grid);
  if (!is_interrupted()) return exit_code_of(store);
  say(stderr, "rehearse: interrupted; {} of {} rows are kept: continue with --resume\n", store.known().size(),
      swept.grid.size());
  return kInterrupted;
}

VerbOption rows_option(Output& output, const char* help) {
  return {.names = {output.flag},
          .target =
              [&output](const std::vector<std::string>& files) {
                output.is_wanted = true;
                output.file = files.empty() ? "" : files.back();
              },
          .help = help,
          .value = "[FILE]",
          .arity = Arity::at_most_one};
}

std::vector<VerbOption> picture_options(SweepOptions& options) {
  std::vector<std::string> kinds;
  for (const plot::PlotKind kind : plot::plot_kinds()) kinds.push_back(plot::to_string(kind));
  return {{.names = {"--svg"},
           .target = &options.svg,
           .help = "draw the rows; the kind of plot follows from the fields that vary",
           .value = "FILE",
           .refuse = named_as(".svg")},
          {.names = {"--png"},
           .target = &options.png,
           .help = "the same as PNG, by rsvg-convert",
           .value = "FILE",
           .refuse = named_as(".png")},
          {.names = {"--html"},
           .target = &options.html,
           .help = "one HTML page with rows, picture and curves; needs no network",
           .value = "FILE",
           .refuse = named_as(".html")},
          {.names = {"--plot"},
           .target = &options.plot,
           .help = "kind of plot: " + join(kinds),
           .value = "KIND",
           .words = kinds}};
}

std::vector<VerbOption> store_options(SweepOptions& options) {
  return {{{"--store"}, &options.store, "SQLite file of the rows; default: in the user's cache", "FILE"},
          {{"--resume"},
           &options.resume,
           "continue an earlier run; rows of changed files or of another build run again"},
          {{"--shard"},
           &options.shard,
           "run every n-th point, from the i-th; auto: i and n of a Slurm array or MPI launcher",
           "i/n|auto"},
          {{"--merge"},
           &options.merged,
           "merge the rows of other stores of this sweep, unless files or build have changed",
           "FILE..."},
          jobs_option(options.jobs, "rows at a time"),
          {.names = {"--row-timeout"},
           .target = &options.most_seconds,
           .help = "timeout of a row in seconds",
           .value = "S",
           .bounds = {{0.001, 1e9}}}};
}

}  // namespace

Verb sweep_verb() {
  const auto options = std::make_shared<SweepOptions>();
  Verb verb{"sweep", "run every combination of lists of values, one row each"};
  verb.add_all(scenario_options(options->given));
  verb.add(rows_option(options->csv, "rows as CSV, to standard output or a file"));
  verb.add(rows_option(options->jsonl, "rows as JSON lines, to standard output or a file"));
  verb.add_all(picture_options(*options));
  verb.add_all(store_options(*options));
  verb.add_all(execute_row_options(options->execute));
  verb.footer =
      "Any flag takes a list (1,2,4) or a range (2:32:*2, 256:1024:+256); values that hold commas are "
      "divided\n"
      "by ';'. GPUs and global batch stay as given. A plan that is illegal or does not fit\n"
      "is a row with its reason. Memory is the total on the fullest GPU: allocator peak, CUDA context, NCCL "
      "buffers.\n"
      "Examples:\n"
      "  rehearse sweep scenarios/llama3-70b-512-h100.json --mbs 1,2,4 --vpp 1,2,5 --engine reference\n"
      "  rehearse sweep scenarios/llama3-70b-512-h100.json --pp 2:16:*2 --gbs 512:2048:*2 --csv rows.csv\n"
      "  rehearse sweep --model llama3-8b --cluster dgx-h100 --gpus 64 --gbs 256 --tp 1:8:*2 --jsonl\n"
      "  rehearse sweep scenarios/megatron-ptdp-175b.json --set cluster.node.nics.bandwidth=12.5GB/s,25GB/s\n"
      "  rehearse sweep scenarios/llama3-70b-512-h100.json --vpp 1,5 --gbs 64:4096:*2 --svg bubble.svg\n"
      "  rehearse sweep big.json --tp 1:8:*2 --pp 1:64:*2 --shard 3/8 --store part3.db\n"
      "  srun -n 64 rehearse sweep big.json --tp 1:8:*2 --pp 1:64:*2 --shard auto --store "
      "part$SLURM_PROCID.db\n"
      "  rehearse sweep big.json --tp 1:8:*2 --pp 1:64:*2 --store all.db --merge part*.db --csv all.csv\n"
      "  rehearse sweep scenarios/gpt-10m-2-cores.json --schedule 1f1b,gpipe --gbs 4:32:*2 --execute cpu";
  verb.run = [options] { return sweep(*options); };
  return verb;
}

}  // namespace rehearse
