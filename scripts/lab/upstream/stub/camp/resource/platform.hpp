/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
namespace camp {
namespace resources {
inline namespace v1 {
enum class Platform { undefined, host, cuda, omp_target, hip, sycl };
}
} // namespace resources
} // namespace camp
