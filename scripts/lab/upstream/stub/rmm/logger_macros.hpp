/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the header that RMM's build makes: nothing is logged. */
#pragma once
#define RMM_LOG_LEVEL_TRACE 0
#define RMM_LOG_ACTIVE_LEVEL 6
#define RMM_LOG_TRACE(...) (void)0
#define RMM_LOG_DEBUG(...) (void)0
#define RMM_LOG_INFO(...) (void)0
#define RMM_LOG_WARN(...) (void)0
#define RMM_LOG_ERROR(...) (void)0
#define RMM_LOG_CRITICAL(...) (void)0
