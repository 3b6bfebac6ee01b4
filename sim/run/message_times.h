// How long do messages take by their prices, whatever part of a link a folded rank has?
#pragma once

#include <vector>

#include "run/loads.h"

namespace rehearse {

// By task: of a message, its seconds by its price between the leader's own ranks, latency included. -1: the
// task is no message.
using MessageTimes = std::vector<double>;

// make_loads() (run/loads.h) on nodes of one kind, with the times of the messages.
Loads make_loads(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                 const Profile& profile, const Prices& prices, const MessageSizes& sizes,
                 const Conditions& conditions, const StageNodes& nodes, MessageTimes& message_s);

}  // namespace rehearse
