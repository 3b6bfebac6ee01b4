#include "plan/layer_split.h"

#include <fmt/core.h>

#include "base/parse_work.h"
#include "plan/rules/nearest.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

[[noreturn]] void reject(const std::string& field, std::string rule, std::string values,
                         std::string nearest = {}) {
  throw InputError(Violation{{}, field, std::move(rule), std::move(values), std::move(nearest)});
}

// Marks a nearest value: the splitting functions know no other rule.
std::string for_this_rule(const std::string& nearest) {
  return nearest + " (for this rule)";
}

// Layers of one chunk of an end rank.
int chunk_of_end(const std::string& field, int layers, int vpp) {
  if (layers % vpp == 0) return layers / vpp;
  reject(field, "the layers of a rank must divide evenly over its model chunks",
         fmt::format("layers = {}, vpp = {}", layers, vpp),
         for_this_rule(in_words(multiples_around(layers, std::int64_t{1} << 30, vpp))));
}

// Writes a layout out, without repetitions: "Et*2|" is "Ett|".
class LayoutText {
 public:
  explicit LayoutText(const std::string& text) : text_(text) {}

  std::string written_out() {
    std::string all = sequence(0);
    if (at_ < text_.size()) fail("has a ) without its (");
    return all;
  }

 private:
  static constexpr std::size_t kMax = 1'000'000;

  [[noreturn]] void fail(const std::string& what) const {
    reject("layout", "the pipeline layout " + what, fmt::format("\"{}\" at character {}", text_, at_ + 1),
           "Et*2|(t*3|)*6,t*2L");
  }

  std::string sequence(int depth) {
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      const std::string item = one(depth);
      const std::size_t times = repetition();
      if (item.size() * times > kMax - all.size()) fail("is too long");
      for (std::size_t i = 0; i < times && !item.empty(); ++i) all += item;
    }
    return all;
  }

  std::string one(int depth) {
    const char letter = text_[at_++];
    if (letter == ',' || letter == ' ') return "";
    if (letter == '(') {
      if (depth == kMaxNesting) fail(fmt::format("nests too deep: more than {} levels", kMaxNesting));
      std::string inner = sequence(depth + 1);
      if (at_ == text_.size()) fail("has a ( without its )");
      ++at_;
      return inner;
    }
    if (std::string("EtmL|").find(letter) == std::string::npos)
      fail("may contain only E, t, m, L, |, *, ( and )");
    return {letter};
  }

  std::size_t repetition() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    std::size_t times = 0;
    const std::size_t digits = ++at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      times = times * 10 + static_cast<std::size_t>(text_[at_] - '0');
      if (times > kMax) fail("is too long");
    }
    if (at_ == digits) fail("needs a number after *");
    return times;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

// The number of items on each stage, if stages are filled in turn up to a cost of `most`.
std::vector<int> stages_within(const std::vector<double>& items, double most) {
  std::vector<int> stages;
  double sum = 0;
  for (const double item : items) {
    if (stages.empty() || sum + item > most) {
      stages.push_back(0);
      sum = 0;
    }
    ++stages.back();
    sum += item;
  }
  return stages;
}

}  // namespace

std::vector<int> split_with_ends(std::int64_t layers, const Plan& plan, int first_rank, int last_rank) {
  const bool first = first_rank >= 0, last = last_rank >= 0;
  const std::int64_t rest = layers - (first ? first_rank : 0) - (last ? last_rank : 0);
  const std::int64_t between = plan.pp - int{first} - int{last};
  const std::string field = first ? "first_rank_layers" : "last_rank_layers";
  const std::int64_t stages = between * plan.vpp;
  const bool whole = stages > 0 ? rest >= 0 && rest % stages == 0 : between == 0 && rest == 0;
  if (!whole)
    reject(field,
           "the layers outside the first and last rank must divide evenly over the other ranks and their "
           "model chunks",
           fmt::format("{} of {} layers remain, {} ranks x vpp {}", rest, layers, between, plan.vpp));
  const int middle = stages > 0 ? static_cast<int>(rest / stages) : 0;
  const int of_first = first ? chunk_of_end("first_rank_layers", first_rank, plan.vpp) : middle;
  const int of_last = last ? chunk_of_end("last_rank_layers", last_rank, plan.vpp) : middle;
  std::vector<int> split;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    const int rank = pipeline_rank_of(stage, plan);
    split.push_back(rank == 0 ? of_first : rank == plan.pp - 1 ? of_last : middle);
  }
  return split;
}

std::vector<int> split_with_embedding(std::int64_t layers, const Plan& plan, bool embedding, bool loss) {
  const std::int64_t counted = layers + int{embedding} + int{loss};
  const std::int64_t stages = plan.stages();
  if (counted % stages != 0 || counted < stages) {
    reject(
        embedding ? "embedding_as_layer" : "loss_as_layer",
        "the layers must divide evenly over the stages, with embedding and loss where they count as layers",
        fmt::format("{} in all, pp {} x vpp {} = {}", counted, plan.pp, plan.vpp, stages),
        for_this_rule("pp x vpp = " + in_words(numbers_around(stages, counted, [&](std::int64_t n) {
                        return counted % n == 0;
                      }))));
  }
  std::vector<int> split(static_cast<std::size_t>(stages), static_cast<int>(counted / stages));
  split.front() -= int{embedding};
  split.back() -= int{loss};
  if (split.front() < 0 || split.back() < 0)
    reject("loss_as_layer", "one stage cannot hold embedding and loss as its only layer",
           fmt::format("{} layers on {} stages", layers, stages));
  return split;
}

std::vector<int> split_at_shares(const Model& model, const Plan& plan) {
  const auto hidden = static_cast<double>(model.hidden);
  const double attention = 4 * hidden * static_cast<double>(model.heads * model.head_dim);
  const double layer = attention + 3 * hidden * static_cast<double>(model.ffn_hidden);
  const double all = layer * static_cast<double>(model.layers) + hidden * static_cast<double>(model.vocab);
  std::vector<int> split(static_cast<std::size_t>(plan.stages()), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 1; i <= model.layers; ++i) {
    ++split[stage];
    const double share = static_cast<double>(stage + 1) / static_cast<double>(split.size());
    if (layer * static_cast<double>(i) > all * share) ++stage;
  }
  if (stage + 1 == split.size()) return split;
  return {};
}

std::vector<int> split_by_parameters(const Model& model, const Plan& plan) {
  const auto hidden = static_cast<double>(model.hidden), table = hidden * static_cast<double>(model.vocab);
  std::vector<double> items(static_cast<std::size_t>(model.layers) + 3);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerShape of = model.shape_of(layer) == 0
                              ? model.own_shape()
                              : model.shapes[static_cast<std::size_t>(model.shape_of(layer) - 1)];
    items[static_cast<std::size_t>(layer) + 1] =
        hidden * static_cast<double>(2 * (of.heads + of.kv_heads) * of.head_dim +
                                     (model.gated_mlp ? 3 : 2) * of.ffn_hidden);
  }
  items.front() = items.back() = table;
  items[items.size() - 2] = hidden;
  const auto stages = static_cast<std::size_t>(plan.stages());
  double all = 0;
  for (const double item : items) all += item;
  double enough = all;  // enough for a stage
  for (double least = all / static_cast<double>(stages); enough - least > 1;) {
    const double middle = (least + enough) / 2;
    (stages_within(items, middle).size() <= stages ? enough : least) = middle;
  }
  std::vector<int> split = stages_within(items, enough);
  if (split.size() != stages || split.back() < 2) return {};
  split.front() -= 1;
  split.back() -= 2;
  return split;
}

std::vector<int> parse_layout(const std::string& layout, const Model& model) {
  const std::string all = LayoutText(layout).written_out();
  const auto layers_end = all.find_last_not_of("L");
  const std::size_t losses = all.size() - (layers_end == std::string::npos ? 0 : layers_end + 1);
  if (!all.starts_with('E') || all.find('E', 1) != std::string::npos || losses != 1 ||
      all.find('L') != all.size() - 1)
    reject("layout", "a pipeline layout must begin with its only E and end with its only L",
           fmt::format("\"{}\"", layout), "Et*2|(t*3|)*6,t*2L");
  const auto modules = static_cast<std::size_t>(model.mtp_layers);
  const std::string end = std::string(modules, 'm') + 'L';
  if (!all.ends_with(end) || all.find('m') < all.size() - end.size())
    reject("layout", "the MTP layers must be on the last stage, before the loss",
           fmt::format("\"{}\", the model has {}", layout, modules),
           modules == 0 ? "a layout without m" : fmt::format("...{}", end));
  std::vector<int> split(1, 0);
  for (const char letter : all) {
    if (letter == '|') split.push_back(0);
    if (letter == 't') ++split.back();
  }
  return split;
}

}  // namespace rehearse
