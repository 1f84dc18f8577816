#ifndef QUERN_DRIVER_PROGRAM_INPUT_H_
#define QUERN_DRIVER_PROGRAM_INPUT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/npy.h"
#include "tensor/program.h"

namespace CLI {
class App;
}

namespace quern {

/// What the commands that take a formula have in common on the command line.
struct ProgramOptions {
  std::string formula;                 ///< index notation, or the name of a `.uop` file
  std::vector<std::string> sizes;      ///< "i=4,j=5"
  std::vector<std::string> dtypes;     ///< "A=bf16"
  std::vector<std::string> shapes;     ///< "X=1,3,224,224"
  std::vector<std::string> constants;  ///< "W"
  std::vector<std::string> inputs;     ///< "A=a.npy"
  std::vector<std::string> outputs;    ///< "C=c.npy"
  bool fuse = true;
  bool groups = true;
};
void AddProgramOptions(CLI::App& command, ProgramOptions& options);

/// A program, and where its tensors come from and go to.
struct ProgramInput {
  Program program;
  std::map<std::string, NpyArray> arrays;      ///< by tensor; the others get random numbers
  std::map<std::string, std::string> outputs;  ///< tensor → file
  std::string source;                          ///< the formula, or the file's name
};

/// Reads the arrays and the formula, which may be the name of a `.uop` file with one kernel (its
/// tensors are called p0, p1… by slot).
absl::StatusOr<ProgramInput> LoadProgram(const ProgramOptions& options);

}  // namespace quern

#endif  // QUERN_DRIVER_PROGRAM_INPUT_H_
