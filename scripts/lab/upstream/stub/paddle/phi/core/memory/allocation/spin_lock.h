/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
namespace paddle::memory
{
struct SpinLock {
	void lock() {}
	void unlock() {}
};
} // namespace paddle::memory
