/* SPDX-License-Identifier: Apache-2.0 */
/* In place of Umpire's: a handle of a strategy and no more. */
#pragma once
#include "umpire/strategy/AllocationStrategy.hpp"
#include "umpire/util/Macros.hpp"
namespace umpire {
class Allocator {
public:
	explicit Allocator(strategy::AllocationStrategy *s) : m_strategy{ s } {}
	strategy::AllocationStrategy *getAllocationStrategy() { return m_strategy; }

private:
	strategy::AllocationStrategy *m_strategy;
};
} // namespace umpire
