// What happens on Ctrl-C (SIGINT), or when a scheduler wants the program to end (SIGTERM)?
#pragma once

#include <string>

namespace rehearse {

// Called first in main: a signal ends the program at once, with exit code 130. A signal that the parent
// process had set to be ignored stays ignored.
void end_when_interrupted();

// For work that can keep partial results: from here on the first signal is only noted, the second ends the
// program.
void note_interruption();
bool is_interrupted();

// The same for one part of the work, during its lifetime. After it, the next signal ends the program, unless
// note_interruption() or another part still notes signals.
class NotedInterruption {
 public:
  NotedInterruption();
  ~NotedInterruption();
  NotedInterruption(const NotedInterruption&) = delete;
  NotedInterruption& operator=(const NotedInterruption&) = delete;
};

// The unfinished file to remove when a signal ends the program; "" for none.
void remove_when_interrupted(const std::string& path);

}  // namespace rehearse
