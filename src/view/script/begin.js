/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interactive page, from the data that tape.c writes. Three panels: the
 * timeline, the address map and the flame graph at the cursor. Every name comes from the data and is shown by textContent
 * or on a canvas, never as HTML. Drawing goes through a pen, so that a picture (SVG) is what is seen.
 *
 * The Makefile joins the files of this folder, in its order, into one script: all of it is inside this function.
 */
'use strict';
(async () => {
const root = document.getElementById('live');
if (!root || typeof DecompressionStream === 'undefined')
	return;
const SERIES = ['requested', 'allocated', 'active', 'reserved'], ALLOCATED = 1, ACTIVE = 2, RESERVED = 3;
const LIVE = 1, WAITING = 2;
