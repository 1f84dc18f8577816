#ifndef QUERN_BENCH_SUITE_REPORT_H_
#define QUERN_BENCH_SUITE_REPORT_H_

#include <nlohmann/json.hpp>

#include "bench/suite/measure_row.h"

namespace quern {

void PrintHeader();
/// One line for each of Quern's variants and one that has all peers.
void PrintRow(const Row& row);
/// Appends one object for each of Quern's variants to an array.
void AppendJson(const Row& row, nlohmann::json& rows);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_REPORT_H_
