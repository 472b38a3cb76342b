/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the header that Umpire's build makes: nothing is switched on. */
#pragma once
