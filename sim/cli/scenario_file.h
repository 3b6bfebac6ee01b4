// Is what is given as a scenario one?
#pragma once

namespace CLI {
class App;
}

namespace rehearse {

// Has every verb that takes a scenario refuse a file of another kind: a report, a cluster, a model. `import`
// takes files of others.
void require_scenarios(CLI::App& program);

}  // namespace rehearse
