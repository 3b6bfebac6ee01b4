#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "calibrate/import/tables.h"
#include "cost/curves.h"

namespace rehearse {

namespace {

// {head_dim, causal, seq} -> FLOP/s of one implementation and pass.
using Rates = std::map<std::tuple<std::int64_t, bool, std::int64_t>, double>;

Rates rates_of(const Json& table, const std::string& gpu, const std::string& pass,
               const std::string& implementation) {
  Rates rates;
  for (const Json& row : table.at("rows")) {
    if (row.at("gpu") != gpu || row.at("pass_") != pass || row.at("impl") != implementation) continue;
    rates[{count_of(row.at("head_dim")), row.at("causal"), count_of(row.at("seqlen"))}] =
        row.at("tflops").get<double>() * 1e12;
  }
  return rates;
}

// The chart counts backward as 2.5 forwards, so 3.5 / both = 1 / forward + 2.5 / backward.
double backward_rate(double both, double forward) {
  return 2.5 / (3.5 / both - 1 / forward);
}

void add(std::vector<AttentionSample>& samples, const Rates::key_type& at, double forward, double backward) {
  const auto [head_dim, causal, seq] = at;
  samples.push_back({head_dim, seq, causal, false, rounded(forward)});
  samples.push_back({head_dim, seq, causal, true, rounded(backward)});
}

std::vector<AttentionSample> at_roofline(const JsonReader& recipe, const Gpu& gpu) {
  const double peak = peak_flops_of(recipe, gpu);
  std::vector<AttentionSample> samples;
  for (const Json& head_dim : recipe.value("head_dims")) {
    for (const Json& seq : recipe.value("lengths")) {
      for (const bool causal : {false, true})
        add(samples, {count_of(head_dim), causal, count_of(seq)}, peak, peak);
    }
  }
  return samples;
}

// Rates of the rows with the most heads, which fill the GPU.
std::vector<AttentionSample> by_heads(const Json& table, const std::string& file) {
  const auto at = [&](const char* name) {
    return column({{"columns", table.at("attention_columns")}}, name, file);
  };
  const std::size_t head_dim = at("head_dim"), heads = at("heads"), seq = at("seq"),
                    backward = at("backward"), tflops = at("tflops");
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::pair<std::int64_t, double>> most;
  for (const Json& row : table.at("attention")) {
    auto& kept = most[{count_of(row.at(head_dim)), count_of(row.at(seq)), row.at(backward) == 1}];
    kept = std::max(kept, {count_of(row.at(heads)), row.at(tflops).get<double>()});
  }
  std::vector<AttentionSample> samples;
  for (const auto& [shape, best] : most) {
    const auto [dim, length, is_backward] = shape;
    samples.push_back({dim, length, true, is_backward, rounded(best.second * 1e12)});
  }
  return samples;
}

// One row of a table of cuDNN's attention, as a profile's attention kernel with its time.
struct Timed {
  Attention what;
  double seconds = 0;
};

std::vector<Timed> timed(const Json& table, const std::string& file, const std::string& gpu,
                         const std::string& precision) {
  const auto at = [&](const char* name) { return column(table, name, file); };
  const std::size_t of_gpu = at("gpu"), of_precision = at("precision"), head_dim = at("head_dim"),
                    v_head_dim = at("v_head_dim"), heads = at("heads"), seq = at("seq"),
                    causal = at("causal"), window = at("window"), backward = at("backward"),
                    milliseconds = at("milliseconds");
  std::vector<Timed> all;
  for (const Json& row : table.at("rows")) {
    if (row.at(of_gpu) != gpu || row.at(of_precision) != precision) continue;
    Attention what;
    what.batch = 1;
    what.heads = what.kv_heads = count_of(row.at(heads));
    what.head_dim = count_of(row.at(head_dim));
    what.v_head_dim = count_of(row.at(v_head_dim));
    what.query = what.keys = count_of(row.at(seq));
    what.causal = row.at(causal) == 1;
    what.window = count_of(row.at(window));
    what.backward = row.at(backward) == 1;
    all.push_back({what, row.at(milliseconds).get<double>() / 1e3});
  }
  return all;
}

// Rates by head size, keys that a block loops over, mask and pass. Rows with equal keys share an entry.
using Shapes = std::map<std::tuple<std::int64_t, std::int64_t, bool, bool>, std::vector<double>>;

Shapes shapes_of(const std::vector<Timed>& rows, bool whole_backward) {
  Shapes shapes;
  for (Timed row : rows) {
    if (whole_backward && row.what.backward) row.what.window = 0;
    shapes[{row.what.head_dim, looped_keys(row.what), row.what.causal, row.what.backward}].push_back(
        tiled_flops(row.what) / row.seconds);
  }
  return shapes;
}

// Adds backward rates for shapes that have only a forward rate, by the quotient of both at another head size.
void add_backward(const JsonReader& as, const Entry& entry, const std::string& precision, Shapes& shapes) {
  const std::int64_t head_dim = as.integer("head_dim", 1, 1 << 13);
  const Json table = read_table({as, entry.data});
  const Shapes others = shapes_of(timed(table, as.text("file"), as.text("gpu"), precision), false);
  as.reject_unknown();
  const Shapes forward = shapes;
  for (const auto& [shape, rates] : forward) {
    const auto [own, keys, causal, backward] = shape;
    const auto there = others.find({head_dim, keys, causal, false}),
               back = others.find({head_dim, keys, causal, true});
    if (backward || there == others.end() || back == others.end()) continue;
    shapes.try_emplace({own, keys, causal, true},
                       std::vector{median(rates) * median(back->second) / median(there->second)});
  }
}

// Times of single calls. `times`: factor on the rates at the clocks of a training run. `whole_backward`: the
// backward pass covers all keys before a query, even with a window. `backward_as`: used where only forward
// passes were timed.
std::vector<AttentionSample> by_call(const Entry& entry, const Json& table) {
  const JsonReader& recipe = entry.recipe;
  const std::string precision = recipe.text("precision");
  const double times = recipe.number_or("times", 1, 0.1, 2);
  Shapes shapes = shapes_of(timed(table, recipe.text("file"), recipe.text("gpu"), precision),
                            recipe.boolean_or("whole_backward", false));
  if (shapes.empty())
    recipe.fail("gpu", "no row of the table has this GPU and precision", recipe.text("gpu"));
  if (recipe.has("backward_as")) add_backward(recipe.object("backward_as"), entry, precision, shapes);
  std::vector<AttentionSample> samples;
  for (const auto& [shape, rates] : shapes) {
    const auto [head_dim, keys, causal, backward] = shape;
    samples.push_back({head_dim, keys, causal, backward, rounded(times * median(rates))});
  }
  return samples;
}

// `samples` of one kernel, converted to a faster one. The factor is the faster kernel's gain at head size 128
// and the same length: forward with the same mask, backward without one.
void as_faster_kernel(const JsonReader& faster, const Json& table, const std::string& gpu,
                      std::vector<AttentionSample>& samples) {
  constexpr std::int64_t kHeadDim = 128;
  const std::string kernel = faster.text("kernel"), than = faster.text("than");
  faster.reject_unknown();
  const Rates forward_here = rates_of(table, gpu, "fwd", kernel),
              forward_there = rates_of(table, gpu, "fwd", than),
              backward_here = rates_of(table, gpu, "bwd", kernel),
              backward_there = rates_of(table, gpu, "bwd", than);
  for (AttentionSample& sample : samples) {
    const Rates::key_type at{kHeadDim, sample.causal && !sample.backward, sample.seq};
    const Rates& here = sample.backward ? backward_here : forward_here;
    const Rates& there = sample.backward ? backward_there : forward_there;
    if (!here.contains(at) || !there.contains(at))
      faster.fail("kernel", "needs a rate of both kernels for each length", kernel + ", " + than);
    sample.flops_per_s = rounded(sample.flops_per_s * here.at(at) / there.at(at));
  }
}

// The quotient of forward rate and backward rate: by shape, or one for all as the recipe states.
class Quotient {
 public:
  Quotient(const JsonReader& recipe, const Json& table, const std::string& gpu, const std::string& both) {
    if (recipe.has("quotient")) {
      const JsonReader rates = recipe.object("quotient");
      of_all_ = rates.number("forward", 0.01, 1) / rates.number("backward", 0.01, 1);
      rates.reject_unknown();
      return;
    }
    const std::string reference = recipe.text_or("quotient_from", gpu);
    both_ = rates_of(table, reference, "fwd+bwd", recipe.text_or("quotient_of", both));
    forward_ = rates_of(table, reference, "fwd", recipe.text("forward"));
  }

  std::optional<double> at(const Rates::key_type& shape) const {
    if (of_all_) return of_all_;
    const auto both = both_.find(shape), forward = forward_.find(shape);
    if (both == both_.end() || forward == forward_.end()) return {};
    return forward->second / backward_rate(both->second, forward->second);
  }

 private:
  std::optional<double> of_all_;
  Rates both_, forward_;
};

}  // namespace

// Some sources publish only forward with backward. The quotient q of the two rates is then the recipe's
// (`quotient`), or that of the same kernels on a reference GPU at the same head size, mask and length
// (`quotient_from`; `quotient_of` names another implementation to use). 3.5 / both = (1 + 2.5 q) / forward.
std::vector<AttentionSample> import_attention(const Entry& entry, const Gpu& gpu,
                                              std::vector<Source>& sources) {
  const JsonReader& recipe = entry.recipe;
  if (recipe.text("format") == "roofline") {
    sources.push_back({"stated peak, for attention", "", recipe.text("note")});
    return at_roofline(recipe, gpu);
  }
  const Json table = read_table(entry);
  sources.push_back(source_of(table, recipe.text("note")));
  if (recipe.text("format") == "heads") return by_heads(table, recipe.text("file"));
  if (recipe.text("format") == "calls") return by_call(entry, table);
  const std::string name = recipe.text("gpu"), both = recipe.text("both");
  const Quotient quotients(recipe, table, name, both);
  std::vector<AttentionSample> samples;
  for (const auto& [at, rate] : rates_of(table, name, "fwd+bwd", both)) {
    const std::optional<double> quotient = quotients.at(at);
    if (!quotient) continue;
    const double forward = rate * (1 + 2.5 * *quotient) / 3.5;
    add(samples, at, forward, forward / *quotient);
  }
  if (samples.empty()) recipe.fail("gpu", "no row of the table has this GPU and implementation", name);
  if (recipe.has("faster")) as_faster_kernel(recipe.object("faster"), table, name, samples);
  return samples;
}

}  // namespace rehearse
