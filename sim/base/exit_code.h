// With which exit code does the program end?
#pragma once

namespace rehearse {

// Scripts rely on these.
enum ExitCode {
  kDone = 0,
  kFailure = 1,
  kInvalidInput = 2,
  kDoesNotFit = 3,
  kMissing = 4,
  kGateFailed = 5,
  kInterrupted = 130
};

}  // namespace rehearse
