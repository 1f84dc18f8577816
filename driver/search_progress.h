#ifndef QUERN_DRIVER_SEARCH_PROGRESS_H_
#define QUERN_DRIVER_SEARCH_PROGRESS_H_

#include "optimizer/beam.h"

namespace quern {

/// Hooks that show one line of progress on the terminal (nothing in a pipe), and make Ctrl-C end a
/// search with the best so far. A second Ctrl-C ends the program.
SearchHooks TerminalHooks();

/// Whether Ctrl-C has ended a search.
bool Interrupted();

}  // namespace quern

#endif  // QUERN_DRIVER_SEARCH_PROGRESS_H_
