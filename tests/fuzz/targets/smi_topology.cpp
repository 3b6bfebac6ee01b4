#include "cluster/import.h"
#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  write_imported(import_smi(input, "topology.txt"), "dgx-h100");
}
