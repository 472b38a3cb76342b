/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#define UMPIRE_POISON_MEMORY_REGION(allocator, ptr, size)
#define UMPIRE_UNPOISON_MEMORY_REGION(allocator, ptr, size)
