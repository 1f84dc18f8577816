#ifndef QUERN_TESTS_UNIT_CHILD_PROCESSES_H_
#define QUERN_TESTS_UNIT_CHILD_PROCESSES_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace quern {

/// The fields of /proc/PID/stat behind the name, which may hold blanks: state, parent, …; "" if
/// there is no such process.
inline std::string ProcessStat(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos ? "" : line.substr(name_end + 2);
}

/// The first 15 letters of its program's name.
inline std::string ProcessName(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

/// 'R', 'S', 'Z' (a zombie) …; 0 if there is no such process.
inline char ProcessState(pid_t process) {
  const std::string stat = ProcessStat(process);
  return stat.empty() ? 0 : stat[0];
}

/// Children of this process, zombies included; not the program that names functions in reports of
/// sanitizers.
inline std::vector<pid_t> ChildProcesses() {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    if (ProcessName(process).find("symbolizer") != std::string::npos) continue;
    std::istringstream stat(ProcessStat(process));
    char state = 0;
    pid_t parent = 0;
    if (stat >> state >> parent && parent == getpid()) children.push_back(process);
  }
  return children;
}

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_CHILD_PROCESSES_H_
