// Which messages do a rank and the hub of its group exchange? Over sockets of one machine, in whole messages.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cuda_on_cpu {

using Bytes = std::vector<std::byte>;

enum class Kind : std::int32_t { all_reduce, all_gather, reduce_scatter, broadcast, send, receive };

// One NCCL call; a group of calls is one message.
struct Part {
  Kind kind = Kind::send;
  ncclDataType_t type = ncclFloat32;
  std::int32_t operation = 0, peer = 0;  // ncclRedOp_t; the other, or the root
  std::uint64_t count = 0;               // elements of its argument

  bool is_collective() const { return kind != Kind::send && kind != Kind::receive; }
  bool operator==(const Part&) const = default;
};

struct Hello {
  std::int32_t rank = 0, size = 0;
  std::uint64_t gpu = 0;  // of all machines
};

// From a rank: its calls with their input data. To a rank: the result of each call, or the reason for none.
struct Message {
  ncclResult_t state = ncclSuccess;
  std::string reason;
  std::vector<Part> parts;
  std::vector<Bytes> data;  // of each part
};

std::size_t bytes_of(ncclDataType_t type);
const char* name_of(Kind kind);

// False when the other end is gone.
bool say(int socket, const void* data, std::size_t bytes);
bool hear(int socket, void* data, std::size_t bytes);
bool say(int socket, const Message& message);
bool hear(int socket, Message& message);

// The sum or maximum of the ranks' operands, element by element.
Bytes reduced(const std::vector<const Bytes*>& operands, const Part& part);

}  // namespace cuda_on_cpu
