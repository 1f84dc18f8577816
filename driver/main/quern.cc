#include "driver/command.h"
#include "driver/keep_memory.h"

int main(int argc, char** argv) {
  quern::KeepFreedMemory();
  return quern::RunQuern(argc, argv);
}
