// What happens on Ctrl-C (SIGINT), or when a scheduler wants the program to end (SIGTERM)?
#pragma once

#include <string>

namespace rehearse {

// From the first line of main: it ends at once, with exit code 130. A signal that whoever started the program
// had it ignore stays ignored.
void end_when_interrupted();

// For work that keeps what it has: from here on the first signal is only noted, the second ends the program.
void note_interruption();
bool is_interrupted();

// The same for one part of the work, while it lives. Unless note_interruption() or another part still notes
// signals, the next signal after it ends the program.
class NotedInterruption {
 public:
  NotedInterruption();
  ~NotedInterruption();
  NotedInterruption(const NotedInterruption&) = delete;
  NotedInterruption& operator=(const NotedInterruption&) = delete;
};

// The unfinished file that goes when the program is ended so; "" for none.
void remove_when_interrupted(const std::string& path);

}  // namespace rehearse
