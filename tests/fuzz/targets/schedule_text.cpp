#include "fuzz/target.h"
#include "schedule/check.h"
#include "schedule/text.h"

namespace rehearse::fuzz {

namespace {

// Reading and writing again gives the same text.
const Target kScheduleText("schedule_text", [](const std::string& input) {
  const std::string text = write_text(read_text(input, "schedule.txt"));
  if (write_text(read_text(text, "schedule.txt")) != text) std::abort();
});

}  // namespace

}  // namespace rehearse::fuzz
