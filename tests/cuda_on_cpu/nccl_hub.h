// Who brings the ranks of a group together? A thread of the process that made the group's identity: it hears
// what all ranks call, and answers when the calls fit together.
#pragma once

#include <nccl.h>

namespace cuda_on_cpu {

// Starts a hub, and says where it is heard.
ncclUniqueId start_hub();
int connect_to_hub(const ncclUniqueId& id);  // a socket, or -1

}  // namespace cuda_on_cpu
