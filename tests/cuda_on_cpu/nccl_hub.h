// How do the ranks of a group meet? A thread of the process that made the group's identity receives the calls
// of all ranks, and answers when the calls match.
#pragma once

#include <nccl.h>

namespace cuda_on_cpu {

// Starts a hub, and says where it is heard.
ncclUniqueId start_hub();
int connect_to_hub(const ncclUniqueId& id);  // a socket, or -1

}  // namespace cuda_on_cpu
