// Which segments does PyTorch's caching allocator reserve for a sequence of allocations?
//
// Rules of c10/cuda/CUDACachingAllocator.cpp with its default settings:
// - Sizes are rounded up to 512 bytes.
// - Up to 1 MiB comes out of segments of 2 MiB. Less than 10 MiB comes out of segments of 20 MiB. More gets a
//   segment of its own size in whole 2 MiB.
// - The smallest free block that is large enough is taken, of equal ones the one at the lowest address.
// - It is split if more than 1 MiB (small ones: 512 bytes) would be left over.
// - A freed block joins its free neighbours in the segment.
// - Whole free segments are returned only when there is no room for another.
// another.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory_resource>
#include <set>
#include <vector>

namespace rehearse {

class CachingAllocator {
 public:
  using Handle = std::int32_t;  // of a block that was allocated and not freed
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  // `capacity_bytes`: of all segments. It is exceeded if even returned segments make no room.
  explicit CachingAllocator(std::int64_t capacity_bytes = kUnlimited) : capacity_(capacity_bytes) {}
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  Handle allocate(std::int64_t bytes);
  void free(Handle handle);

  // Tensor.record_stream: other streams use the block until `moment`, and it is not reused before. Moments of
  // successive calls may fall, but by no more than the launches in flight.
  void free_at(Handle handle, std::int64_t moment) { used_elsewhere_.push_back({moment, handle}); }
  // The other streams have reached `moment`.
  void reach(std::int64_t moment);

  std::int64_t most_reserved_bytes() const { return most_reserved_; }    // in segments
  std::int64_t most_requested_bytes() const { return most_requested_; }  // of blocks in use

 private:
  struct Block {
    std::int64_t address = 0, bytes = 0, requested = 0;
    Handle before = -1, after = -1;  // neighbours in the segment
    bool is_free = false, is_small = false;
  };
  struct Order {
    const std::vector<Block>* blocks;
    using is_transparent = void;
    bool operator()(Handle a, Handle b) const;
    bool operator()(Handle a, std::int64_t bytes) const;
  };
  using FreeBlocks = std::pmr::set<Handle, Order>;
  struct UsedElsewhere {
    std::int64_t until = 0;
    Handle handle = -1;
  };

  Block& at(Handle handle) { return blocks_[static_cast<std::size_t>(handle)]; }
  FreeBlocks& pool(bool small) { return small ? small_ : large_; }
  Handle take_free(std::int64_t bytes, bool small);
  Handle new_segment(std::int64_t bytes, bool small);
  Handle new_block(Block block);
  void split(Handle handle, std::int64_t bytes);
  void absorb(Handle handle, Handle neighbour);
  void give_back_segments();

  std::int64_t capacity_;
  std::pmr::unsynchronized_pool_resource memory_;
  std::vector<Block> blocks_;
  std::vector<Handle> unused_;  // entries of blocks_
  FreeBlocks small_{Order{&blocks_}, &memory_}, large_{Order{&blocks_}, &memory_};
  std::deque<UsedElsewhere> used_elsewhere_;
  std::int64_t next_address_ = 0, reserved_ = 0, requested_ = 0, most_reserved_ = 0, most_requested_ = 0;
};

}  // namespace rehearse
