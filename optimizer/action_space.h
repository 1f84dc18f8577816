#ifndef QUERN_OPTIMIZER_ACTION_SPACE_H_
#define QUERN_OPTIMIZER_ACTION_SPACE_H_

#include <vector>

#include "optimizer/scheduler.h"

namespace quern {

/// Every action that is worth trying next on a schedule, in a fixed order. The list is made from
/// the kernel's axes and the target (lanes, registers, cores); each action in it is legal.
std::vector<Action> LegalActions(const Scheduler& scheduler);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_ACTION_SPACE_H_
