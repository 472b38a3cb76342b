/* SPDX-License-Identifier: Apache-2.0 */
/* In place of rapids_logger: what RMM's headers name. */
#pragma once
#include <memory>
#include <string>
#include <vector> /* RMM's headers take it from here */
namespace rapids_logger {
struct sink {};
using sink_ptr = std::shared_ptr<sink>;
enum class level_enum { trace, debug, info, warn, error, critical, off };
struct logger {
	template <class... A> explicit logger(A &&...) {}
	template <class... A> void log(A &&...) {}
	template <class... A> void info(A &&...) {}
	template <class... A> void debug(A &&...) {}
	template <class... A> void set_level(A &&...) {}
	void flush() {}
};
struct basic_file_sink_mt : sink {};
} // namespace rapids_logger
