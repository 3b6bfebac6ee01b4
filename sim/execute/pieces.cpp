#include "execute/pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "memory/lifetimes.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

// True for a parameter that every rank holds whole, while each rank computes only a part of its gradient.
// With sequence parallelism these are the parameters of kernels on the rows between the GEMMs. The norms of
// single heads are too, except latent attention's, which norm the common source of all heads.
bool summed_over_tensor_ranks(const Tensor& tensor, const Slice& slice, const Training& training) {
  if (training.plan.tp == 1 || slice.whole_rows > 1 || slice.rows.front().count < slice.whole_rows)
    return false;
  return training.plan.sequence_parallel || tensor.use == TensorUse::head_norm;
}

// A tied head's weight is a copy of the table.
bool is_table(const Tensor& tensor, const Model& model) {
  return tensor.use == TensorUse::word_table ||
         (model.tied_embeddings && tensor.use == TensorUse::head_weight);
}

bool is_shared_table(const Tensor& tensor, const Training& training) {
  const bool apart = pipeline_rank_of(training.plan.stages() - 1, training.plan) != 0;
  if (!training.model.shares_embedding() || !apart) return false;
  return is_table(tensor, training.model);
}

// The copies of a table have one name.
std::string full_name(const Piece& piece, const Tensor& tensor, const Model& model) {
  return is_table(tensor, model) ? "embedding.word_table" : piece.name + "." + tensor.name;
}

std::vector<bool> matrices_of_loss(const Block& block, const std::vector<TensorPlace>& places) {
  const std::vector<bool> tensors = of_loss(block);
  std::vector<bool> matrices(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i]) matrices[static_cast<std::size_t>(places[i].matrix)] = true;
  return matrices;
}

class ParameterAdder {
 public:
  ParameterAdder(const Training& training, int rank, Parameters& parameters)
      : training_(training),
        at_(RankGrid(training.plan).coordinates(rank)),
        expert_at_(RankGrid::of_experts(training.plan).coordinates(rank)),
        parameters_(parameters) {}

  std::vector<ParameterOf> add(const Piece& piece, int stage, int unit) {
    std::vector<ParameterOf> roles(piece.block->tensors.size());
    for (std::size_t i = 0; i < roles.size(); ++i)
      if (const Tensor& tensor = piece.block->tensors[i]; tensor.role == TensorRole::parameter)
        note(piece, i, add(piece, tensor, stage, unit), roles);
    return roles;
  }

  // Ties parameters that another block of this rank already has.
  void tie(const Piece& piece, std::vector<ParameterOf>& roles) {
    for (std::size_t i = 0; i < roles.size(); ++i)
      if (const Tensor& tensor = piece.block->tensors[i]; tensor.role == TensorRole::tied)
        note(piece, i, held(tensor), roles);
  }

 private:
  static void note(const Piece& piece, std::size_t tensor, std::size_t parameter,
                   std::vector<ParameterOf>& roles) {
    roles[tensor].value = static_cast<std::int64_t>(parameter);
    const TensorId gradient = piece.find(piece.block->tensors[tensor].name + "_gradient");
    if (gradient >= 0)
      roles[static_cast<std::size_t>(gradient)].gradient = static_cast<std::int64_t>(parameter);
  }

  std::size_t add(const Piece& piece, const Tensor& tensor, int stage, int unit) {
    const Slice slice = slice_of(tensor);
    Segment where;
    where.stage = stage;
    where.unit = unit;
    if (tensor.of_experts) {
      where.summed = SummedOver::expert_replicas;
    } else if (is_shared_table(tensor, training_)) {
      where.summed = SummedOver::other_stage_too;
    } else if (summed_over_tensor_ranks(tensor, slice, training_)) {
      where.summed = SummedOver::tensor_ranks_too;
    }
    return parameters_.add(where, full_name(piece, tensor, training_.model), slice,
                           static_cast<std::int64_t>(tensor.elements));
  }

  Slice slice_of(const Tensor& tensor) const {
    const Model& model = training_.model;
    const Plan& plan = training_.plan;
    return tensor.of_experts ? expert_slice_of(tensor, model, plan, expert_at_)
                             : rehearse::slice_of(tensor, at_[static_cast<std::size_t>(Axis::tp)], plan.tp);
  }

  std::size_t held(const Tensor& tensor) {
    const std::string name = is_table(tensor, training_.model) ? "embedding.word_table" : "head.head_weight";
    const auto found = std::ranges::find(parameters_.all(), name, &Parameter::name);
    if (found == parameters_.all().end())
      throw std::logic_error("a rank does not hold " + name + ", which two of its blocks share");
    parameters_.segments()[found->segment].read_by_two_units = true;
    return static_cast<std::size_t>(found - parameters_.all().begin());
  }

  const Training& training_;
  Coordinates at_, expert_at_;
  Parameters& parameters_;
};

}  // namespace

TensorId Piece::find(const std::string& tensor) const {
  const auto found = std::ranges::find(block->tensors, tensor, &Tensor::name);
  return found == block->tensors.end() ? TensorId{-1} : static_cast<TensorId>(found - block->tensors.begin());
}

Range range_of_unit(const std::vector<Piece>& pieces, int unit, int units) {
  const auto is_layer = [](const Piece& piece) { return piece.layer >= 0; };
  const auto first_layer = std::ranges::find_if(pieces, is_layer);
  const auto count = static_cast<int>(pieces.size());
  if (first_layer == pieces.end() || std::ranges::count_if(pieces, is_layer) != units)
    return {static_cast<std::size_t>(count * unit / units),
            static_cast<std::size_t>(count * (unit + 1) / units)};
  const auto own = static_cast<std::size_t>(first_layer - pieces.begin() + unit);
  return {unit == 0 ? 0 : own, unit + 1 == units ? pieces.size() : own + 1};
}

std::vector<Piece> make_pieces(const Training& training, int stage) {
  const Work& work = training.work;
  std::int64_t layer =
      split_layers(training.model, training.plan)[static_cast<std::size_t>(stage)].first_layer;
  std::vector<Piece> pieces;
  for (const Repeated& repeated : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(repeated.block)];
    const bool is_module = block.role == BlockRole::module;
    const bool is_layer = is_module || block.role == BlockRole::layer;
    for (std::int64_t i = 0; i < repeated.repeats; ++i) {
      Piece piece;
      piece.block = &block;
      piece.layer = is_layer ? layer++ : -1;
      piece.name = is_layer && !is_module ? fmt::format("layers.{}", piece.layer) : block.name;
      piece.reads_ahead = is_module;
      piece.places = place_tensors(block);
      piece.fixed.assign(block.tensors.size(), nullptr);
      piece.of_loss = matrices_of_loss(block, piece.places);
      pieces.push_back(std::move(piece));
    }
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].block->joins_previous) first = i;
    const bool ends = i + 1 == pieces.size() || !pieces[i + 1].block->joins_previous;
    pieces[i].runs_again_from = ends ? first : i;
    pieces[i].passes = make_passes(*pieces[i].block, pieces[i].places, first < i || !ends);
  }
  return pieces;
}

std::vector<std::vector<ParameterOf>> add_parameters(const Training& training, int stage,
                                                     const std::vector<Piece>& pieces, int units, int rank,
                                                     Parameters& parameters) {
  ParameterAdder adder(training, rank, parameters);
  std::vector<std::vector<ParameterOf>> roles;
  for (int unit = 0; unit < units; ++unit) {
    const Range range = range_of_unit(pieces, unit, units);
    for (std::size_t i = range.first; i < range.last; ++i) roles.push_back(adder.add(pieces[i], stage, unit));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) adder.tie(pieces[i], roles[i]);
  return roles;
}

}  // namespace rehearse
