#include "fuzz/target.h"
#include "schedule/check.h"
#include "schedule/text.h"

// What is read is written the same again.
void rehearse::fuzz::read(const std::string& input) {
  const std::string text = write_text(read_text(input, "schedule.txt"));
  if (write_text(read_text(text, "schedule.txt")) != text) std::abort();
}
