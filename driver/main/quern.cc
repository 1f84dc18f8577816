#include "driver/command.h"

int main(int argc, char** argv) { return quern::RunQuern(argc, argv); }
