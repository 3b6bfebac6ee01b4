#include "calibrate/import/nccl_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/error.h"

namespace rehearse::nccl {

namespace {

constexpr int kMaxGroup = 1 << 20;

// Numbers of ranks that a run may have had.
struct Range {
  int least = 1, most = kMaxGroup;
  bool holds(int ranks) const { return ranks >= least && ranks <= most; }
};

// busbw / algbw is `scale` (n-1)/n; 0: it is 1 for any n.
double scale_of(const std::string& op) {
  if (op == "all_reduce") return 2;
  for (const char* shared : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"})
    if (op == shared) return 1;
  return 0;
}

// Early nccl-tests printed the ratio 1 for gathers, which gives no information.
Range ranks_of_ratio(const BusRatio& ratio, double scale) {
  constexpr double kSlack = 1e-6;
  if (scale == 0 || !ratio.known() || ratio.most >= scale) return {};
  const double least = scale / (scale - std::max(0.0, ratio.least)), most = scale / (scale - ratio.most);
  if (most > kMaxGroup) return {};
  const int low = static_cast<int>(std::ceil(least - kSlack)),
            high = static_cast<int>(std::floor(most + kSlack));
  // Between two integers: by rounding of the ratio's last digit.
  return low <= high ? Range{std::max(1, low), high} : Range{std::max(1, high), low};
}

std::string text_of(const Range& range) {
  if (range.least == range.most) return fmt::format("{} GPU{}", range.least, range.least == 1 ? "" : "s");
  return fmt::format("{} to {} GPUs", range.least, range.most);
}

class Sizing {
 public:
  Sizing(const LogRun& run, const std::string& op, const GivenSize& given, const Cluster& cluster)
      : run_(run),
        op_(op),
        given_(given),
        cluster_(cluster),
        range_(ranks_of_ratio(run.ratio, scale_of(op))) {
    told_ = range_.most < kMaxGroup;
  }

  GroupSize size() {
    require_one_run();
    const bool listed_from_first = run_.ranks > 0 && run_.ranks == run_.last_rank + 1;
    if (listed_from_first && run_.ranks >= range_.least) return listed();
    if (listed_from_first && !(given_.nodes > 0 && given_.gpus_per_node > 0)) return listed_in_part();
    if (run_.last_rank + 1 > range_.most)
      refuse(fmt::format("names Rank {}, but busbw / algbw is that of fewer GPUs", run_.last_rank),
             by_ratio());
    range_.least = std::max(range_.least, run_.last_rank + 1);
    const int ranks = concluded();
    GroupSize size{given_.nodes, given_.gpus_per_node, ""};
    if (ranks > 0) size = placed(ranks);
    require(size.nodes > 0, "--nodes", "on how many nodes it ran", ranks);
    require(size.gpus_per_node > 0, "--gpus-per-node", "how many GPUs of each node took part", ranks);
    return size;
  }

 private:
  [[noreturn]] void refuse(const std::string& rule, const std::string& values,
                           const std::string& next = "") const {
    throw InputError({run_.place, "", rule, values, next});
  }

  void require(bool known, const char* flag, const char* what, int ranks) const {
    if (known) return;
    const std::string of = ranks > 0 ? fmt::format("; its bandwidths are those of {} GPUs", ranks) : "";
    throw InputError(
        {run_.place, flag, fmt::format("the log does not say {}{}; give {}", what, of, flag), "", ""});
  }

  std::string by_ratio() const {
    return fmt::format("busbw / algbw = {:.4g}: {}", run_.ratio.middle(), text_of(range_));
  }

  void require_one_run() const {
    const double scale = scale_of(op_);
    if (scale > 0 && run_.ratio.known() && run_.ratio.least > scale)
      refuse(fmt::format("has bandwidths that are not of {}: busbw / algbw is below {} there", op_, scale),
             fmt::format("busbw / algbw = {:.4g}", run_.ratio.middle()), "--op all_reduce");
    if (run_.ratio.contradicts_itself())
      refuse("busbw / algbw differs from row to row: its rows are of groups of different sizes",
             fmt::format("at least {:.4g} and at most {:.4g}", run_.ratio.least, run_.ratio.most),
             "the log of one run");
    if (run_.rank_twice)
      refuse(
          "lists a rank twice: several runs at once, each without the others, as nccl-tests do without MPI",
          told_ ? by_ratio() : fmt::format("{} lines of {} ranks", run_.ranks, run_.last_rank + 1),
          "nccl-tests built with MPI=1, or the log of one of the runs");
    if (run_.splits > 1)
      refuse("lists its ranks in several groups, which ran at once; a table is of one group by itself",
             fmt::format("{} ranks in {} groups", run_.ranks, run_.splits), "a run without NCCL_TESTS_SPLIT");
    if (range_.most == 1)
      refuse("was taken on one GPU by itself, where nothing is sent: busbw is 0",
             fmt::format("{} rank{} listed", run_.ranks, run_.ranks == 1 ? "" : "s"),
             "a run over several GPUs; over several processes nccl-tests need a build with MPI=1");
  }

  // --nodes and --gpus-per-node may place the ranks differently, since containers share their names.
  GroupSize listed() const {
    if (!range_.holds(run_.ranks))
      refuse("lists more ranks than its bandwidths are of",
             fmt::format("{} ranks listed; {}", run_.ranks, by_ratio()), "the whole log of one run");
    GroupSize size{given_.nodes > 0 ? given_.nodes : run_.hosts, given_.gpus_per_node, ""};
    if (size.gpus_per_node == 0 && run_.ranks % size.nodes == 0) size.gpus_per_node = run_.ranks / size.nodes;
    require(size.gpus_per_node > 0, "--gpus-per-node", "how many GPUs of each node took part", run_.ranks);
    if (std::int64_t{size.nodes} * size.gpus_per_node != run_.ranks)
      refuse("lists another number of ranks than --nodes and --gpus-per-node give",
             fmt::format("{} ranks listed, {} x {}", run_.ranks, size.nodes, size.gpus_per_node),
             fmt::format("--nodes {}", run_.hosts));
    if (size.nodes != run_.hosts)
      size.note = fmt::format("the log names {} hosts, --nodes {} is taken", run_.hosts, size.nodes);
    return size;
  }

  // Lines are missing at the end of the list. The first hosts still tell how many GPUs each has.
  GroupSize listed_in_part() const {
    const int each = run_.ranks / run_.hosts, ranks = range_.least;
    if (range_.least != range_.most || run_.hosts < 2 || run_.ranks % run_.hosts != 0 || ranks % each != 0)
      refuse("lists fewer ranks than its bandwidths are of",
             fmt::format("{} ranks listed; {}", run_.ranks, by_ratio()),
             "--nodes and --gpus-per-node of the run");
    return {ranks / each, each,
            fmt::format(
                "{} ranks on {} hosts are listed, but busbw / algbw = {:.4g} is that of {} GPUs: taken as {} "
                "nodes of {}",
                run_.ranks, run_.hosts, run_.ratio.middle(), ranks, ranks / each, each)};
  }

  // The number of ranks, or 0.
  int concluded() const {
    if (given_.nodes > 0 && given_.gpus_per_node > 0) {
      const std::int64_t ranks = std::int64_t{given_.nodes} * given_.gpus_per_node;
      if (ranks < range_.least || ranks > range_.most)
        refuse("--nodes and --gpus-per-node give another number of GPUs than the log",
               fmt::format("{} x {}; {}", given_.nodes, given_.gpus_per_node,
                           told_ ? by_ratio() : fmt::format("Rank {} is named", run_.last_rank)));
      return static_cast<int>(ranks);
    }
    if (range_.least == range_.most) return range_.least;
    return told_ && range_.holds(run_.last_rank + 1) ? run_.last_rank + 1 : 0;
  }

  // Whole NVLink domains have only one possible placement of ranks.
  GroupSize placed(int ranks) const {
    GroupSize size{given_.nodes, given_.gpus_per_node, ""};
    const int whole = cluster_.node.gpus;
    if (size.nodes == 0 && size.gpus_per_node > 0 && ranks % size.gpus_per_node == 0)
      size.nodes = ranks / size.gpus_per_node;
    if (size.nodes == 0 && cluster_.nccl.host_gpus > 0 && ranks % whole == 0) size.nodes = ranks / whole;
    if (size.nodes == 0) return size;
    if (size.gpus_per_node == 0 && ranks % size.nodes == 0) size.gpus_per_node = ranks / size.nodes;
    if (given_.nodes == 0 || given_.gpus_per_node == 0)
      size.note = fmt::format("{} GPUs follow from {}{}", ranks,
                              told_ ? fmt::format("busbw / algbw = {:.4g}", run_.ratio.middle())
                                    : fmt::format("Rank {}", run_.last_rank),
                              given_.nodes + given_.gpus_per_node > 0
                                  ? ""
                                  : fmt::format(", which fill {} node{} of {}", size.nodes,
                                                size.nodes == 1 ? "" : "s", cluster_.name));
    return size;
  }

  const LogRun& run_;
  const std::string& op_;
  const GivenSize& given_;
  const Cluster& cluster_;
  Range range_;
  bool told_ = false;  // by the ratio
};

// The words of a device's name that stand for a model or a form: "H100", "MI300X", "RTX5090", "PCIE", "SXM".
struct GpuName {
  std::set<std::string> models;
  std::string form;
};

bool is_memory(const std::string& word) {
  const std::size_t letters = word.find_first_not_of("0123456789");
  if (letters == std::string::npos) return true;
  const std::string unit = word.substr(letters);
  return (letters > 0 && (unit == "GB" || unit == "GIB" || unit == "W")) || word.starts_with("HBM") ||
         word.starts_with("GDDR");
}

GpuName parsed(const std::string& name) {
  std::vector<std::string> words(1);
  for (const unsigned char letter : name) {
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::toupper(letter));
    } else if (!words.back().empty() && words.back() != "RTX" && words.back() != "GTX") {
      words.emplace_back();
    }
  }
  GpuName found;
  for (const std::string& word : words) {
    if (word.starts_with("SXM")) found.form = "SXM";
    if (word.starts_with("PCIE")) found.form = "PCIe";
    const bool digits = word.find_first_of("0123456789") != std::string::npos;
    if (digits && !is_memory(word) && !word.starts_with("SXM") && !word.starts_with("PCIE"))
      found.models.insert(word);
  }
  return found;
}

bool differ(const GpuName& a, const GpuName& b) {
  if (a.models.empty() || b.models.empty()) return false;
  const bool shared =
      std::ranges::any_of(a.models, [&](const std::string& model) { return b.models.contains(model); });
  return !shared || (!a.form.empty() && !b.form.empty() && a.form != b.form);
}

}  // namespace

GroupSize size_of_group(const LogRun& run, const std::string& op, const GivenSize& given,
                        const Cluster& cluster) {
  return Sizing(run, op, given, cluster).size();
}

std::string other_gpu(const LogRun& run, const Cluster& cluster) {
  for (const std::string& gpu : run.gpus) {
    if (differ(parsed(gpu), parsed(cluster.gpu.name)))
      return fmt::format("the log is of {}, but {} has {}: the times describe another GPU", gpu, cluster.name,
                         cluster.gpu.name);
  }
  return "";
}

}  // namespace rehearse::nccl
