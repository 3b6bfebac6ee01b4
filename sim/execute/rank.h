// How does one rank run its list of ops? Each op is issued on its stream after the events that it waits for.
// This code does not know which schedule the list came from.
//
// Activations live as long as the kernel lists read them. Each sent or received message has its own memory
// for each stage and microbatch, kept for the whole run. The reason: a message may end later than any op that
// was issued meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/double_buffers.h"
#include "execute/groups.h"
#include "execute/offloaded.h"
#include "execute/pieces.h"
#include "execute/training.h"
#include "launch/views.h"
#include "plan/ranks.h"

namespace rehearse {

class Rank {
 public:
  // The device, the world and the training must outlive the rank.
  Rank(const Training& training, kernels::Device& device, kernels::World& world);

  // Prepares step `step`, from 0: its batches, and gradients of 0.
  void prepare(std::int64_t step);
  // Records an event that is the time origin of all ranks' spans.
  std::shared_ptr<kernels::Event> mark();
  // Issues all ops of a prepared step and waits for them. Failures are thrown.
  void run();
  // Ends its streams after all issued work. Streams of its peers may still read its memory.
  void end_streams();

  std::size_t ops() const { return ops_.size(); }
  const Op& op(std::size_t index) const { return ops_[index]; }
  // Times of the last step: seconds after `origin` at which op i began or ended.
  double began(std::size_t op, kernels::Event& origin) const { return begins_[op]->seconds_since(origin); }
  double ended(std::size_t op, kernels::Event& origin) const { return ends_[op]->seconds_since(origin); }
  // This rank's part of the mean loss of the step's tokens; 0 on a rank without a head.
  double loss() const { return loss_; }
  // Norm of all ranks' gradients before clipping. 0 where it is not computed; infinite or no number where a
  // gradient is.
  double gradient_norm() const { return gradient_norm_; }
  // Factor of the loss in this step and in the next one; 1 where the loss is not scaled.
  float loss_scale() const { return step_loss_scale_; }
  float next_loss_scale() const { return loss_scale_ ? loss_scale_->value() : 1; }
  // Whether the optimizer changed nothing, because scaled gradients overflowed.
  bool skipped() const { return skipped_; }

  // The op that has not ended, "" when all have. May be called while run() runs.
  std::string stands_at() const;
  std::size_t ops_ended() const { return ended_.load(); }
  std::size_t ops_issued() const { return issued_.load(); }  // a device may take few at a time

  int rank() const { return rank_; }
  int pipeline_rank() const { return pipeline_rank_; }
  const Parameters& parameters() const { return parameters_; }
  std::size_t peak_activation_bytes() const { return pool_.peak_bytes(); }
  std::size_t peak_offloaded_bytes() const { return host_pool_.peak_bytes(); }      // of activations
  std::size_t peak_gathered_bytes() const { return parameter_pool_.peak_bytes(); }  // of values, with ZeRO-3

 private:
  // Inputs of a block that embeds tokens, and inputs and outputs of one with a loss.
  struct Reading {
    kernels::Buffer tokens, labels, losses;
  };
  // State of a microbatch on a stage.
  struct Microbatch {
    std::vector<Held> held;              // by piece
    Offloaded offloaded;                 // of it
    Memory arrived, arrived_gradient;    // from the stages before and behind
    Memory outgoing, outgoing_gradient;  // to them, where another rank runs them
    Memory activation, output_gradient;  // between the pieces that ran last and run next
    Reading next, ahead;                 // of the model, and of the MTP layer
    kernels::Buffer sent, received, sent_gradient, received_gradient;
  };
  struct StageRun {
    int units = 1;  // parts in which its parameters are gathered or its gradients reduced
    std::vector<Piece> pieces;
    std::vector<BoundBlock> bound;  // by piece
    std::vector<Microbatch> microbatches;
  };

  // Place where an op finds a parameter or its gradient.
  struct Use {
    Piece* piece = nullptr;
    std::size_t tensor = 0, parameter = 0;
  };
  // Memory of a segment besides its own, where no rank keeps the segment whole.
  struct SegmentRun {
    std::vector<Use> values, gradients;
    Memory gathered;                 // all values, from UNSHARD to RESHARD
    void* microbatch_sum = nullptr;  // all gradients of one microbatch, from its backward to its reduction
    kernels::Buffer arriving;  // gradients of this shard, summed over the replicas, in the type of the wire
    void* to_host = nullptr;   // the same where it goes to the host, until copied
    kernels::Buffer landed, widened;  // at the host: as on the wire, and in the sum's type if different
    kernels::Buffer fresh;            // all gradients of one microbatch, where these have their own type
  };

  void make_stages();
  void make_streams();
  StageRun make_stage(int stage);
  void note_uses(StageRun& stage, const std::vector<std::vector<ParameterOf>>& roles);
  void make_segments();
  void point(const std::vector<Use>& uses, const kernels::Tensor& segment);
  void bind(StageRun& stage);
  void copy_batch(int microbatch, StageRun& stage);
  void copy_batch(int microbatch, const Reading& to, std::int64_t ahead);
  void add_up_losses();
  void set_loss_scale();
  void end_step();
  void issue(std::size_t index);
  void settle_copies(const Op& op);
  void launch(const Op& op, kernels::Stream& stream);
  void forward(const Op& op, kernels::Stream& stream);
  void backward(const Op& op, kernels::Stream& stream);
  void backward_weight(const Op& op, kernels::Stream& stream);
  void run_again(const Op& op, const Range& group, kernels::Stream& stream);
  void run_pass(const Op& op, std::size_t piece, const Pass& pass, kernels::Stream& stream);
  void run_kernel(BoundBlock& bound, const PassStep& step, kernels::Stream& stream);
  void run_collective(const Launch& launch, const Collective& collective, kernels::Stream& stream);
  struct Travelling;
  Travelling travelling(const Launch& launch, TensorId id);
  void make_sorting_place();
  kernels::Communicator& group_of(const Collective& collective);
  // Collectives of context-parallel ranks.
  void run_context_collective(const Launch& launch, const Collective& collective, kernels::Stream& stream);
  void gather_rows(const Launch& launch, kernels::Stream& stream);
  void scatter_rows(const Launch& launch, kernels::Stream& stream);
  void swap_heads(const Launch& launch, bool to_heads, kernels::Stream& stream);
  void run_ring(const Launch& launch, const Attention& attention, kernels::Stream& stream);
  void return_gradients(const Launch& launch, std::size_t step, kernels::Stream& stream);
  struct Staged;
  Staged stage(std::int64_t elements);
  void make_positions();
  void seed_dropout(BoundBlock& bound, const Kernel& kernel) const;
  void* locate(const Piece& piece, TensorId matrix) const;
  void send(const Op& op, kernels::Stream& stream);
  void receive(const Op& op, kernels::Stream& stream);
  void offload_activations(const Op& op, kernels::Stream& stream);
  void reload_activations(const Op& op, kernels::Stream& stream);
  void follow_compute(kernels::Stream& stream);
  void offload_gradients(const Op& op, kernels::Stream& stream);
  void add_at_host(std::size_t segment, kernels::Stream& stream);
  void take_to_host(const Segment& segment, kernels::Stream& stream);
  void reload_parameters(const Op& op, kernels::Stream& stream);
  bool comes_again(const Op& op) const;
  template <typename Visit>
  void for_each_written(const Op& op, const Visit& visit);
  void make_room_for_gradients(const Op& op, kernels::Stream& stream);
  void add_fresh_gradients(const Op& op, kernels::Stream& stream);
  void reduce_gradients(const Op& op, kernels::Stream& stream);
  void reduce_microbatch(std::size_t index, kernels::Stream& stream);
  void reduce_replicas(const Op& op, kernels::Stream& stream);
  void add_arrived(std::size_t segment, kernels::Stream& stream);
  void sum_over(kernels::Communicator& group, CollectiveOp op, const kernels::Tensor& gradients,
                const kernels::Tensor& sum, kernels::Stream& stream);
  void add(const kernels::Tensor& more, const kernels::Tensor& sum, kernels::Stream& stream);
  kernels::Tensor arriving(std::size_t segment) const;
  void reduce_tied(const Op& op, kernels::Stream& stream);
  void gather_parameters(const Op& op, kernels::Stream& stream);
  void drop_parameters(const Op& op);
  void meet_before_step(kernels::Stream& stream);
  void step(kernels::Stream& stream);
  void launch_step(const kernels::Call& call, kernels::Stream& stream);
  void sum_squares(kernels::Stream& stream);
  void run_optimizer(std::size_t kernel, const Segment* segment, kernels::Stream& stream);
  kernels::Tensor counted_squares(const Segment& segment) const;
  // Ranks that hold the same segment; null members where no other rank does.
  Groups::Holders& holders(const Segment& segment) {
    return segment.is_of_experts() ? groups_.experts : groups_.dense;
  }

  // Calls visit(index) for the segments that an op of the gradient or parameter stream covers.
  template <typename Visit>
  void for_each_segment(const Op& op, const Visit& visit) {
    bool found = false;
    for (std::size_t i = 0; i < parameters_.segments().size(); ++i) {
      const Segment& segment = parameters_.segments()[i];
      if (segment.stage != op.stage || (op.parts > 1 && segment.unit != unit_of(op))) continue;
      found = true;
      visit(i);
    }
    if (!found) reject(op, "the stage has fewer layers than parts");
  }
  Range pieces_of(const Op& op, const StageRun& stage) const {
    return range_of_unit(stage.pieces, unit_of(op), op.parts);
  }
  StageRun& stage_run(const Op& op);
  Microbatch& microbatch_of(const Op& op);
  // On one hardware queue, work runs in the order of its launches.
  Stream queue_of(const Op& op) const { return training_.plan.one_queue ? Stream::compute : op.stream; }
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
  StateTypes types_;
  CollectiveOp reduction_;  // gradient_reduction()
  Groups groups_;
  Parameters parameters_;
  Pool pool_, host_pool_;  // of the compute stream, and of copies that follow it
  Pool parameter_pool_;    // of the parameter stream
  DoubleBuffers gradient_buffers_;
  std::vector<SegmentRun> segment_runs_;
  kernels::Buffer positions_;        // places of all context-parallel ranks in the sequence
  kernels::Buffer rows_of_choices_;  // one integer for each row that a sparse layer sorts
  kernels::Buffer go_;               // one element, summed by all ranks before they step
  kernels::Buffer squares_, scale_;  // one element each, where gradients are clipped
  std::map<int, StageRun> stages_;
  // State of the pass that is being issued.
  const Held* held_ = nullptr;
  const Op* op_ = nullptr;
  const Piece* piece_ = nullptr;
  std::vector<std::shared_ptr<kernels::Event>> begins_, ends_;  // by op
  std::atomic<std::size_t> issued_ = 0, ended_ = 0;
  std::int64_t step_ = 0;
  double loss_ = 0, gradient_norm_ = 0;
  Plan step_plan_;  // whose optimizer kernels run
  std::optional<LossScale> loss_scale_;
  float step_loss_scale_ = 1;
  std::int64_t steps_taken_ = 0;
  bool skipped_ = false;
  std::array<std::unique_ptr<kernels::Stream>, kStreams> streams_;  // ends first: its calls use all others
};

}  // namespace rehearse
