// How does one rank run its list of ops? Each op is issued on its stream after the events that it waits for;
// nothing here knows which schedule the list came from.
//
// Activations live as long as the kernel lists read them. What is sent or received has a place of its own for
// each stage and microbatch, kept for the whole run: a message may end later than any op that was issued
// meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "execute/groups.h"
#include "execute/pieces.h"
#include "execute/training.h"
#include "plan/ranks.h"

namespace rehearse {

class Rank {
 public:
  // The device, the world and the training must outlive the rank.
  Rank(const Training& training, kernels::Device& device, kernels::World& world);

  // Makes ready for step `step`, from 0: its batches, gradients of 0.
  void prepare(std::int64_t step);
  // Marks the beginning, for all ranks' spans.
  std::shared_ptr<kernels::Event> mark();
  // Issues all ops of a prepared step and waits for them. What goes wrong is thrown.
  void run();

  std::size_t ops() const { return ops_.size(); }
  const Op& op(std::size_t index) const { return ops_[index]; }
  // Of the last step. Seconds after `origin` at which op i began or ended.
  double began(std::size_t op, kernels::Event& origin) const { return begins_[op]->seconds_since(origin); }
  double ended(std::size_t op, kernels::Event& origin) const { return ends_[op]->seconds_since(origin); }
  // This rank's part of the mean loss of the step's tokens; 0 where no head is.
  double loss() const { return loss_; }

  // The op that has not ended, "" when all have; may be asked while run() runs.
  std::string stands_at() const;
  std::size_t ops_ended() const { return ended_.load(); }

  int pipeline_rank() const { return pipeline_rank_; }
  const Parameters& parameters() const { return parameters_; }
  std::size_t peak_activation_bytes() const { return pool_.peak_bytes(); }

 private:
  // What a microbatch has on a stage.
  struct Microbatch {
    std::vector<Held> held;              // by piece
    Memory arrived, arrived_gradient;    // from the stages before and behind
    Memory outgoing, outgoing_gradient;  // to them, where another rank runs them
    Memory activation, output_gradient;  // between the pieces that ran last and run next
    kernels::Buffer tokens, labels, losses;
    kernels::Buffer sent, received, sent_gradient, received_gradient;
  };
  struct StageRun {
    std::vector<Piece> pieces;
    std::vector<BoundBlock> bound;  // by piece
    std::vector<Microbatch> microbatches;
  };

  void make_stages();
  void make_streams();
  StageRun make_stage(int stage);
  void point_at_parameters(StageRun& stage, const std::vector<std::vector<ParameterOf>>& roles);
  void bind(StageRun& stage);
  void copy_batch(int microbatch, StageRun& stage);
  void add_up_losses();
  void issue(std::size_t index);
  void launch(const Op& op, kernels::Stream& stream);
  void forward(const Op& op, kernels::Stream& stream);
  void backward(const Op& op, kernels::Stream& stream);
  void backward_weight(const Op& op, kernels::Stream& stream);
  void run_pass(const Op& op, std::size_t piece, const Pass& pass, kernels::Stream& stream);
  void run_kernel(BoundBlock& bound, const PassStep& step, kernels::Stream& stream);
  void run_collective(const BoundBlock& bound, const Kernel& kernel, kernels::Stream& stream);
  void seed_dropout(BoundBlock& bound, const Kernel& kernel) const;
  void* locate(const Piece& piece, TensorId matrix) const;
  void send(const Op& op, kernels::Stream& stream);
  void receive(const Op& op, kernels::Stream& stream);
  void reduce_gradients(const Op& op, kernels::Stream& stream);
  void reduce_tied(const Op& op, kernels::Stream& stream);
  void gather_parameters(const Op& op, kernels::Stream& stream);
  void meet_before_step(kernels::Stream& stream);
  void step(kernels::Stream& stream);

  StageRun& stage_run(const Op& op);
  Microbatch& microbatch_of(const Op& op);
  bool runs(int stage) const { return stages_.contains(stage); }
  int rank_of(int stage) const { return rank_of_stage_[static_cast<std::size_t>(stage)]; }
  kernels::Tensor boundary(const kernels::Buffer& buffer) const;
  Memory message_place(kernels::Buffer& buffer) const;
  [[noreturn]] void reject(const Op& op, const std::string& why) const;

  const Training& training_;
  kernels::Device& device_;
  Coordinates at_;
  int rank_ = 0, pipeline_rank_ = 0;
  const RankOps& ops_;
  std::vector<int> rank_of_stage_;
  Groups groups_;
  Parameters parameters_;
  Pool pool_;
  kernels::Buffer go_;  // one element, summed by all ranks before they step
  std::map<int, StageRun> stages_;
  // Of the pass that is being issued.
  const Held* held_ = nullptr;
  const Op* op_ = nullptr;
  const Piece* piece_ = nullptr;
  std::vector<std::shared_ptr<kernels::Event>> begins_, ends_;  // by op
  std::atomic<std::size_t> ended_ = 0;
  std::int64_t step_ = 0;
  double loss_ = 0;
  std::array<std::unique_ptr<kernels::Stream>, kStreams> streams_;  // ends first: its calls use all others
};

}  // namespace rehearse
