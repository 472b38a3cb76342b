/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that one can move in; docs/view.md says what it shows and how its data are written (tape.c). Three panels: the
 * timeline, the address map and the flame graph at the cursor. Every name comes from the data and is shown by textContent
 * or on a canvas, never as HTML. Drawing goes through a pen, so that a picture (SVG) is what is seen.
 */
'use strict';
(async () => {
const root = document.getElementById('live');
if (!root || typeof DecompressionStream === 'undefined')
	return;
const SERIES = ['requested', 'allocated', 'active', 'reserved'], RESERVED = 3, ALLOCATED = 1;
const MARKS = ['step', 'refused', 'empty_cache', 'returned to serve a request'];
const EV = { ALLOC: 0, FREE: 1, FREE_REQUESTED: 2, FREE_COMPLETED: 3, TRIM: 4, REFUSED: 5, MARK: 6 };
const LIVE = 1, WAITING = 2, DROPPED = 3;

/* ---- bytes ---- */

function base64(text)
{
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text), out = new Uint8Array(binary.length);
	for (let i = 0; i < out.length; i++)
		out[i] = binary.charCodeAt(i);
	return out;
}

async function unpack(bytes, packed)
{
	if (!packed)
		return bytes;
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* Blob i; null: it is not in this file. */
async function blob(i)
{
	const element = document.getElementById('b' + i);
	if (element)
		return unpack(base64(element.textContent), element.type.endsWith('zlib'));
	if (!root.dataset.served)
		return null;
	const answer = await fetch('b/' + i);
	if (!answer.ok)
		throw new Error('cufrag view is not running any more');
	return unpack(new Uint8Array(await answer.arrayBuffer()),
		      answer.headers.get('content-type').endsWith('zlib'));
}

class Reader {
	constructor(bytes) { this.bytes = bytes; this.at = 0; }
	get more() { return this.at < this.bytes.length; }
	u()
	{
		const bytes = this.bytes;
		let b = bytes[this.at++];
		if (b < 128)
			return b;
		let v = b & 127, scale = 128;
		do {
			b = bytes[this.at++];
			v += (b & 127) * scale;
			scale *= 128;
		} while (b > 127);
		return v;
	}
	step()
	{
		const z = this.u();
		return z % 2 ? -(z + 1) / 2 : z / 2;
	}
}

function columns(bytes)
{
	const out = [], sizes = new DataView(bytes.buffer, bytes.byteOffset);
	for (let at = 0; at + 4 <= bytes.length;) {
		const n = sizes.getUint32(at, true);
		out.push(new Reader(bytes.subarray(at + 4, at + 4 + n)));
		at += 4 + n;
	}
	return out;
}

function texts(bytes)
{
	const names = new TextDecoder().decode(columns(bytes)[0].bytes).split('\0');
	names.pop();
	return names;
}

/* ---- numbers as people read them ---- */

function size(bytes)
{
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0, v = Math.abs(bytes);
	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	return (bytes < 0 ? '-' : '') + (i ? v.toPrecision(v >= 1000 ? 4 : 3) : Math.round(v)) + ' ' + units[i];
}
const grouped = n => Math.round(n).toLocaleString('en');
function duration(us)
{
	return us < 1e3 ? us.toFixed(0) + ' us' : us < 1e6 ? (us / 1e3).toPrecision(3) + ' ms' :
		us < 6e7 ? (us / 1e6).toPrecision(4) + ' s' : Math.floor(us / 6e7) + ' min ' + (us % 6e7 / 1e6).toFixed(1) + ' s';
}
/* First i in [0, n) for which is(i), else n. */
function bisect(n, is)
{
	let low = 0, high = n;
	while (low < high) {
		const at = (low + high) >> 1;
		if (is(at))
			high = at;
		else
			low = at + 1;
	}
	return low;
}

/* ---- lanes: the pyramid, marks, losses ---- */

const head = JSON.parse(new TextDecoder().decode(await blob(root.dataset.head)));

/* A tree over the buckets: node i is the extremes of 2i and 2i + 1, bucket b is node leaves + b. */
function tree(count, rows)
{
	let leaves = 1;
	while (leaves < count)
		leaves *= 2;
	const high = SERIES.map(() => new Float64Array(2 * leaves)), low = SERIES.map(() => new Float64Array(2 * leaves).fill(Infinity));
	for (let s = 0; s < 4; s++) {
		let last = 0;
		for (let i = 0; i < count; i++) {
			last += rows[2 * s].step();
			high[s][leaves + i] = last;
			low[s][leaves + i] = last - rows[2 * s + 1].u();
		}
		for (let i = leaves - 1; i > 0; i--) {
			high[s][i] = Math.max(high[s][2 * i], high[s][2 * i + 1]);
			low[s][i] = Math.min(low[s][2 * i], low[s][2 * i + 1]);
		}
	}
	return { leaves, high, low };
}

async function openLane(lane, number)
{
	const rows = columns(await blob(lane.pyramid));
	lane.number = number;
	lane.name = lane.trace + ', ' + lane.policy;
	lane.times = [];
	while (rows[8].more)
		lane.times.push(rows[8].u());
	lane.tree = tree(lane.times.length, rows);
	const losses = columns(await blob(lane.losses))[0], marks = columns(await blob(lane.marks))[0];
	lane.losses = [];
	for (let event = 0; losses.more;)
		lane.losses.push([event += losses.u(), losses.u(), losses.u()]);
	lane.marks = [];
	for (let event = 0, us = 0; marks.more;) {
		const what = marks.u();
		lane.marks.push({ what, event: event += marks.u(), us: us += marks.u(), value: marks.u() });
	}
	lane.steps = lane.marks.filter(m => m.what === 0).map(m => m.event);
	lane.cache = new Map();
}

const files = head.files;
/* Names and stacks of a recording, read when they are first shown. */
function names(lane)
{
	const file = files[lane.file];
	file.opened ??= (async () => {
		const [strings, frames, sites] = await Promise.all([file.strings, file.frames, file.sites].map(async b => texts(await blob(b))));
		const [site, stack] = columns(await blob(file.stacks)), siteOf = [], stacks = [];
		while (site.more) {
			siteOf.push(site.u());
			const list = new Array(stack.u());
			for (let i = 0; i < list.length; i++)
				list[i] = stack.u();
			stacks.push(list);
		}
		return Object.assign(file, { names: strings, frameNames: frames, siteNames: sites, siteOf, stackList: stacks });
	})();
	return file.opened;
}
const siteName = (file, stack) => file.siteNames?.[file.siteOf[stack]] || '(no stack)';

/* ---- pieces ---- */

function readKeys(lane, k, program, places)
{
	const p = columns(program)[0], q = columns(places)[0], first = k * lane.piece_events, us = p.u();
	const key = { first, us, totals: [q.u(), q.u(), q.u(), q.u()], blocks: [], ranges: [] };
	let slot = -1, addr = 0, last = 0;
	for (let d; (d = p.u());) {
		slot += d;
		const b = { slot, born: first - p.u(), bornUs: us - p.u(), bytes: p.u(), stack: p.u(), stream: p.u(), pool: p.u(), state: q.u() };
		if (b.state !== DROPPED) {
			b.addr = addr += q.step();
			b.granted = b.bytes + q.step();
		}
		key.blocks.push(b);
	}
	while (q.more) {
		const start = last + q.step(), bytes = q.u();
		last = start + bytes;
		key.ranges.push({ start, end: last, stream: q.u() });
	}
	return key;
}

/* The events of a piece, with the four series after each. */
function readPiece(lane, key, program, places)
{
	const [op, time, kind, kinds, slots] = columns(program), [ref, addrs, extra, change, correct] = columns(places);
	const n = op.bytes.length, first = key.first, list = [], dict = [], spare = [];
	const out = { key, first, n, op: op.bytes, us: new Float64Array(n), slot: new Int32Array(n).fill(-1), kind: new Int32Array(n).fill(-1), kinds: list,
		      addr: new Float64Array(n), granted: new Float64Array(n), series: SERIES.map(() => new Float64Array(n)), changes: [] };
	const bornBefore = new Map(key.blocks.map(b => [b.born, b.slot])), bytesOf = [], grantedOf = [], stateOf = [];
	for (const b of key.blocks) {
		bytesOf[b.slot] = b.bytes;
		grantedOf[b.slot] = b.granted;
		stateOf[b.slot] = b.state;
	}
	for (let event = first; change.more;)
		out.changes.push({ event: event += change.u(), kind: change.u(), addr: change.u(), bytes: change.u(), stream: change.u() });
	let us = key.us, last = [0, 0, 0, 0], high = 0, fix = correct.more ? correct.u() : -1;
	const now = key.totals.slice();
	for (let i = 0; i < n; i++) {
		const what = op.bytes[i] & 7;
		us += time.step();
		out.us[i] = us;
		if (what === EV.ALLOC || what === EV.REFUSED) {
			const number = kind.u();
			if (!number)
				list.push(last = last.map(v => v + kinds.step()));
			out.kind[i] = number ? number - 1 : list.length - 1;
		}
		if (what === EV.ALLOC) {
			const explicit = slots.u(), slot = explicit ? explicit - 1 : spare.pop(), bytes = list[out.kind[i]][0], r = ref.u();
			out.slot[i] = slot;
			stateOf[slot] = r ? LIVE : DROPPED;
			bytesOf[slot] = bytes;
			if (r) {
				if (r === 1) {
					high += addrs.step();
					dict.push(high * 512 + addrs.u());
				}
				out.addr[i] = dict[r === 1 ? dict.length - 1 : r - 2];
				out.granted[i] = grantedOf[slot] = bytes + extra.step();
				now[0] += bytes;
				now[1] += out.granted[i];
				now[2] += out.granted[i];
			}
		} else if (what < EV.TRIM) {
			const born = first + i - slots.u(), slot = born >= first ? out.slot[born - first] : bornBefore.get(born), state = stateOf[slot];
			out.slot[i] = slot;
			if (state === LIVE) {
				now[0] -= bytesOf[slot];
				now[1] -= grantedOf[slot];
			}
			if ((state === LIVE || state === WAITING) && what !== EV.FREE_REQUESTED)
				now[2] -= grantedOf[slot];
			stateOf[slot] = what !== EV.FREE_REQUESTED ? 0 : state === LIVE ? WAITING : state;
			if (what !== EV.FREE_REQUESTED)
				spare.push(slot);
		}
		while (fix === i) {
			const s = correct.u();
			now[s] += correct.step();
			fix = correct.more ? correct.u() : -1;
		}
		for (let s = 0; s < 4; s++)
			out.series[s][i] = now[s];
	}
	return out;
}

/* Asked for twice, read once; the least recently used are forgotten. */
function cached(lane, key, limit, make)
{
	let found = lane.cache.get(key);
	if (found)
		lane.cache.delete(key);
	else
		found = make().then(v => (found.value = v, redraw(), v));
	lane.cache.set(key, found);
	for (const old of lane.cache.keys()) {
		if (lane.cache.size <= limit)
			break;
		lane.cache.delete(old);
	}
	return found;
}

const pieceOf = (lane, event) => Math.floor(event / lane.piece_events);
function keys(lane, k)
{
	return cached(lane, 'k' + k, 40, async () => readKeys(lane, k, await blob(head.lanes[lane.program].pieces[4 * k]), await blob(lane.pieces[4 * k + 2])));
}
/* null: its single events are not in this file */
function piece(lane, k)
{
	return cached(lane, k, 40, async () => {
		const [key, program, places] = await Promise.all([keys(lane, k), blob(head.lanes[lane.program].pieces[4 * k + 1]), blob(lane.pieces[4 * k + 3])]);
		return program && places ? readPiece(lane, key, program, places) : null;
	});
}
/* What is there already; undefined: it is being read */
function pieceNow(lane, k)
{
	const found = piece(lane, k);
	return found.value;
}

/* ---- events and pixels ---- */

const ui = { lane: 0, x0: 0, x1: 1, axis: 'events', at: 0, pinned: false, colour: 'call site', by: 'line', query: '', sel: null, mark: null, other: '', mapScale: 1, mapTop: 0 };
let lane;

const whole = () => ui.axis === 'time' ? Math.max(lane.duration_us, 1) : lane.events_count;
/* The first event at or after x. */
function eventAt(x)
{
	if (ui.axis !== 'time')
		return Math.max(0, Math.min(lane.events_count, Math.ceil(x - 1e-6)));
	const b = Math.max(0, bisect(lane.times.length, i => lane.times[i] >= x) - 1);
	const from = b * lane.bucket_events, to = Math.min(from + lane.bucket_events, lane.events_count);
	const p = from < lane.events_count ? lane.cache.get(pieceOf(lane, from))?.value : null;
	if (x <= 0)
		return 0;
	return p ? from + bisect(to - from, i => p.us[from - p.first + i] >= x) : to;
}
function xOf(event)
{
	if (ui.axis !== 'time')
		return event;
	const p = lane.cache.get(pieceOf(lane, event))?.value;
	if (p && event - p.first < p.n)
		return p.us[event - p.first];
	const b = Math.floor(event / lane.bucket_events), from = lane.times[b] ?? lane.duration_us, to = lane.times[b + 1] ?? lane.duration_us;
	return from + (to - from) * (event / lane.bucket_events - b);
}

/*
 * The extremes of each pixel column: [x0, x1) in `width` parts. The events are divided among the columns, each in one, so the
 * highest column is the highest event. Above `bucket_events` a column they are divided by whole buckets.
 */
function columnsOf(of, x0, x1, width)
{
	const keep = lane;
	lane = of;
	const edges = [], high = SERIES.map(() => new Float64Array(width)), low = SERIES.map(() => new Float64Array(width));
	const events = eventAt(x1) - eventAt(x0), coarse = events / width >= lane.bucket_events;
	let exact = coarse;
	if (!coarse) {
		exact = true;
		for (let k = pieceOf(lane, eventAt(x0)); k * lane.piece_events < Math.min(eventAt(x1) + 1, lane.events_count); k++)
			exact = !!pieceNow(lane, k) && exact;
	}
	for (let i = 0; i <= width; i++) {
		const e = eventAt(x0 + (x1 - x0) * i / width);
		edges.push(exact && !coarse ? e : Math.round(e / lane.bucket_events));
	}
	if (coarse || !exact) {
		const { leaves, high: up, low: down } = lane.tree, last = lane.times.length;
		for (let i = 0; i < width; i++) {
			let a = Math.min(edges[i], last - 1), b = Math.min(Math.max(edges[i + 1], a + 1), last);
			for (let s = 0; s < 4; s++) {
				let h = 0, l = Infinity;
				for (let p = a + leaves, q = b + leaves; p < q; p >>= 1, q >>= 1) {
					if (p & 1) {
						h = Math.max(h, up[s][p]);
						l = Math.min(l, down[s][p++]);
					}
					if (q & 1) {
						h = Math.max(h, up[s][--q]);
						l = Math.min(l, down[s][q]);
					}
				}
				high[s][i] = h;
				low[s][i] = l;
			}
		}
	} else {
		let k = -1, p = null;
		const value = (s, event) => {
			if (event < 0)
				return 0;
			if (pieceOf(lane, event) !== k)
				p = pieceNow(lane, k = pieceOf(lane, event));
			return p ? p.series[s][event - p.first] : 0;
		};
		for (let i = 0; i < width; i++) {
			for (let s = 0; s < 4; s++) {
				let h = -Infinity, l = Infinity;
				for (let e = edges[i]; e < edges[i + 1]; e++) {
					const v = value(s, e);
					h = Math.max(h, v);
					l = Math.min(l, v);
				}
				if (h < 0) /* no event: what was there before */
					h = l = value(s, Math.min(edges[i], lane.events_count) - 1);
				high[s][i] = h;
				low[s][i] = l;
			}
		}
	}
	const unit = exact && !coarse ? 1 : lane.bucket_events;
	lane = keep;
	return { high, low, edges: edges.map(e => Math.min(e * unit, of.events_count)), exact };
}

/* ---- the state after an event ---- */

function changeRanges(ranges, c)
{
	const end = c.addr + c.bytes;
	if (c.kind === 0 || c.kind === 2) {
		ranges.push({ start: c.addr, end, stream: c.stream });
		return ranges;
	}
	return ranges.flatMap(r => r.end <= c.addr || r.start >= end ? [r] :
		[{ ...r, end: c.addr }, { ...r, start: end }].filter(part => part.start < part.end));
}

/* Calls apply(slot, block) for each block that comes, and gone(slot, event, us) for each that goes, up to event `to`. */
function playPiece(p, to, apply, free)
{
	for (let i = 0; i < p.n && p.first + i <= to; i++) {
		const what = p.op[i] & 7;
		if (what === EV.ALLOC) {
			const k = p.kinds[p.kind[i]];
			apply({ slot: p.slot[i], born: p.first + i, bornUs: p.us[i], bytes: k[0], stack: k[1], stream: k[2], pool: k[3], state: p.granted[i] || p.addr[i] ? LIVE : DROPPED, addr: p.addr[i], granted: p.granted[i] }, i);
		} else if (what < EV.TRIM) {
			free(p.slot[i], what, i);
		}
	}
}

/* The blocks and ranges after `event`, by address; exact: false where the file has only the state before its piece. */
async function stateAt(of, event)
{
	event = Math.max(0, Math.min(event, of.events_count - 1));
	const k = pieceOf(of, event), p = await piece(of, k), key = await keys(of, k), live = new Map();
	let ranges = key.ranges.slice();
	for (const b of key.blocks)
		live.set(b.slot, b.state === DROPPED ? null : { ...b });
	if (p) {
		playPiece(p, event, b => live.set(b.slot, b.state === DROPPED ? null : b), (slot, what) => {
			const b = live.get(slot);
			if (what === EV.FREE_REQUESTED && b)
				b.state = WAITING;
			else if (what !== EV.FREE_REQUESTED)
				live.delete(slot);
		});
		for (const c of p.changes)
			if (c.event <= event)
				ranges = changeRanges(ranges, c);
	}
	const blocks = [...live.values()].filter(b => b).sort((a, b) => a.addr - b.addr);
	ranges = ranges.slice().sort((a, b) => a.start - b.start);
	return { event, exact: !!p, us: p ? p.us[event - p.first] : key.us, blocks, ranges: cover(ranges, blocks),
		 totals: p ? p.series.map(s => s[event - p.first]) : key.totals };
}

/* Blocks outside of the ranges (policies that tell of no segments) get ranges of their own; neighbours become one. */
function cover(ranges, blocks)
{
	const out = ranges.slice();
	let i = 0;
	for (const b of blocks) {
		while (i < ranges.length && ranges[i].end <= b.addr)
			i++;
		if (i < ranges.length && ranges[i].start <= b.addr)
			continue;
		const last = out.length > ranges.length ? out[out.length - 1] : null;
		if (last && last.end === b.addr)
			last.end += b.granted;
		else
			out.push({ start: b.addr, end: b.addr + b.granted, stream: b.stream });
	}
	return out.sort((a, b) => a.start - b.start);
}

/* When a block is freed: { requested, completed } as [event, us], or none. Its piece is found by halving: once gone, it stays gone. */
async function endOf(of, block, event)
{
	const last = of.pieces.length / 4 - 1;
	let low = pieceOf(of, event), high = last;
	while (low < high) {
		const at = Math.ceil((low + high) / 2), key = await keys(of, at);
		if (key.blocks.some(b => b.slot === block.slot && b.born === block.born))
			low = at;
		else
			high = at - 1;
	}
	const out = {};
	for (let k = pieceOf(of, event); k <= low; k = k < low ? low : low + 1) {
		const p = await piece(of, k);
		for (let i = p ? Math.max(0, block.born + 1 - p.first) : 0; p && i < p.n; i++) {
			const what = p.op[i] & 7;
			if (p.slot[i] !== block.slot || what === EV.ALLOC)
				continue;
			if (what === EV.FREE_REQUESTED)
				out.requested ??= [p.first + i, p.us[i]];
			else
				return { ...out, completed: [p.first + i, p.us[i]] };
		}
	}
	return out;
}

/* ---- who holds it: bytes by stack; without a stack by size, as a number below 0 ---- */

const SAMPLES = 48;
const holder = (of, b) => files[of.file].stackList[b.stack]?.length ? b.stack : -b.bytes;
async function weightsAt(of, event)
{
	await names(of);
	const state = await stateAt(of, event), out = new Map();
	for (const b of state.blocks)
		out.set(holder(of, b), (out.get(holder(of, b)) || 0) + b.granted);
	return out;
}

/* The average over events [from, to): bytes x time; over more pieces than SAMPLES, of the states at their beginnings. */
async function weightsOver(of, from, to, still)
{
	await names(of);
	const out = new Map(), timed = of.duration_us > 0, a = pieceOf(of, from), b = pieceOf(of, Math.max(from, to - 1));
	const add = (stack, v) => v && out.set(stack, (out.get(stack) || 0) + v);
	if (b - a > SAMPLES) {
		for (let i = 0; i < SAMPLES && still(); i++)
			for (const block of (await keys(of, a + Math.floor((b - a) * i / SAMPLES))).blocks)
				add(holder(of, block), (block.granted || 0) / SAMPLES);
		return Object.assign(out, { sampled: SAMPLES });
	}
	const live = new Map();
	let begin = null, now = 0;
	for (let k = a; k <= b && still(); k++) {
		const p = await piece(of, k), clock = i => timed ? p.us[i] : p.first + i;
		if (!p)
			return weightsAt(of, from);
		if (k === a)
			for (const block of p.key.blocks)
				live.set(block.slot, { ...block, since: -Infinity });
		playPiece(p, to - 1, (block, i) => {
			now = clock(i);
			if (begin === null && p.first + i >= from)
				begin = now;
			live.set(block.slot, { ...block, since: now });
		}, (slot, what, i) => {
			const block = live.get(slot);
			now = clock(i);
			if (begin === null && p.first + i >= from)
				begin = now;
			if (what === EV.FREE_REQUESTED || !block)
				return;
			if (begin !== null)
				add(holder(of, block), (block.granted || 0) * (now - Math.max(begin, block.since)));
			live.delete(slot);
		});
	}
	begin ??= now;
	for (const block of live.values())
		add(holder(of, block), (block.granted || 0) * (now - Math.max(begin, block.since)));
	if (now === begin)
		return weightsAt(of, from);
	for (const [stack, v] of out)
		out.set(stack, v / (now - begin));
	return out;
}

function moduleOf(frame)
{
	const path = frame.replace(/:\d+ .*$|:\d+$/, ''), inPackage = path.match(/(?:site|dist)-packages\/(.*)/);
	const parts = (inPackage ? inPackage[1] : path).split('/').filter(Boolean);
	if (!inPackage)
		return parts[parts.length - 1] || frame;
	return parts.slice(0, Math.min(2, Math.max(1, parts.length - 1))).join('.').replace(/\.py$/, '');
}

/* A tree of frames, outermost first: value is after, base before (two moments or lanes). */
function frameTree(sides)
{
	const top = { name: 'all', value: 0, base: 0, kids: new Map() };
	sides.forEach(({ file, weights }, side) => {
		for (const [stack, weight] of weights) {
			const list = file.stackList?.[stack] || [], field = side === sides.length - 1 ? 'value' : 'base';
			let node = top, before = null;
			top[field] += weight;
			const path = list.length ? list.map(f => file.frameNames[f]).reverse() : ['(no stack)', size(-stack) + ' each'];
			for (const frame of path) {
				const name = ui.by === 'module' ? moduleOf(frame) : frame;
				if (ui.by === 'module' && name === before)
					continue;
				before = name;
				let kid = node.kids.get(name);
				if (!kid)
					node.kids.set(name, kid = { name, value: 0, base: 0, kids: new Map(), parent: node });
				kid[field] += weight;
				node = kid;
			}
		}
	});
	return top;
}

/* ---- pens ---- */

function colourOf(name)
{
	return getComputedStyle(root).getPropertyValue('--' + name).trim() || '#888';
}

class CanvasPen {
	constructor(canvas)
	{
		const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
		this.width = Math.max(1, Math.round(box.width));
		this.height = Math.max(1, Math.round(box.height));
		if (canvas.width !== Math.round(this.width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
			canvas.width = Math.round(this.width * ratio);
			canvas.height = Math.round(this.height * ratio);
		}
		this.c = canvas.getContext('2d');
		this.c.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.c.clearRect(0, 0, this.width, this.height);
		this.c.font = '12px system-ui, sans-serif';
	}
	rect(x, y, w, h, fill, alpha = 1)
	{
		this.c.globalAlpha = alpha;
		this.c.fillStyle = fill;
		this.c.fillRect(x, y, w, h);
		this.c.globalAlpha = 1;
	}
	frame(x, y, w, h, stroke, thick = 1)
	{
		this.c.strokeStyle = stroke;
		this.c.lineWidth = thick;
		this.c.strokeRect(x, y, w, h);
	}
	area(xs, ys, floor, fill, alpha)
	{
		this.c.globalAlpha = alpha;
		this.c.fillStyle = fill;
		this.c.beginPath();
		this.c.moveTo(xs[0], floor);
		for (let i = 0; i < ys.length; i++) {
			this.c.lineTo(xs[i], ys[i]);
			this.c.lineTo(xs[i + 1], ys[i]);
		}
		this.c.lineTo(xs[ys.length], floor);
		this.c.fill();
		this.c.globalAlpha = 1;
	}
	outline(xs, ys, stroke)
	{
		this.c.strokeStyle = stroke;
		this.c.lineWidth = 1.5;
		this.c.beginPath();
		for (let i = 0; i < ys.length; i++) {
			this.c.lineTo(xs[i], ys[i]);
			if (ys[i] !== ys[i + 1])
				this.c.lineTo(xs[i + 1], ys[i]);
		}
		this.c.stroke();
	}
	line(x0, y0, x1, y1, stroke, dash = [], thick = 1)
	{
		this.c.strokeStyle = stroke;
		this.c.lineWidth = thick;
		this.c.setLineDash(dash);
		this.c.beginPath();
		this.c.moveTo(x0, y0);
		this.c.lineTo(x1, y1);
		this.c.stroke();
		this.c.setLineDash([]);
	}
	text(x, y, text, fill, anchor = 'start', room = Infinity)
	{
		this.c.fillStyle = fill;
		this.c.textAlign = anchor;
		if (this.c.measureText(text).width > room)
			text = text.slice(0, Math.max(0, Math.floor(room / 7) - 1)) + '…';
		if (text.length > 1 || room === Infinity)
			this.c.fillText(text, x, y);
	}
}

class SvgPen {
	constructor(width, height)
	{
		this.width = width;
		this.height = height;
		this.out = [];
	}
	add(tag, fields, text)
	{
		const safe = v => String(v).replace(/[&<>"]/g, c => '&#' + c.charCodeAt(0) + ';').replace(/[\0-\x08\x0b-\x1f]/g, '?');
		this.out.push('<' + tag + Object.entries(fields).map(([k, v]) => ' ' + k + '="' + safe(typeof v === 'number' ? +v.toFixed(2) : v) + '"').join('') +
			(text === undefined ? '/>' : '>' + safe(text) + '</' + tag + '>'));
	}
	rect(x, y, width, height, fill, alpha = 1) { this.add('rect', { x, y, width, height, fill, 'fill-opacity': alpha }); }
	frame(x, y, width, height, stroke, thick = 1) { this.add('rect', { x, y, width, height, stroke, fill: 'none', 'stroke-width': thick }); }
	path(xs, ys)
	{
		let d = '';
		for (let i = 0; i < ys.length; i++)
			if (i === ys.length - 1 || ys[i] !== ys[i + 1] || ys[i] !== ys[i - 1])
				d += 'L' + xs[i].toFixed(1) + ' ' + ys[i].toFixed(1) + 'H' + xs[i + 1].toFixed(1);
		return d;
	}
	area(xs, ys, floor, fill, alpha) { this.add('path', { d: 'M' + xs[0].toFixed(1) + ' ' + floor + this.path(xs, ys) + 'V' + floor + 'Z', fill, 'fill-opacity': alpha }); }
	outline(xs, ys, stroke) { this.add('path', { d: 'M' + this.path(xs, ys).slice(1), stroke, fill: 'none', 'stroke-width': 1.5 }); }
	line(x1, y1, x2, y2, stroke, dash = [], thick = 1) { this.add('line', { x1, y1, x2, y2, stroke, 'stroke-dasharray': dash.join(' '), 'stroke-width': thick }); }
	text(x, y, text, fill, anchor = 'start', room = Infinity)
	{
		const most = Math.floor(room / 6.5);
		if (most > 1)
			this.add('text', { x, y, fill, 'text-anchor': anchor === 'center' ? 'middle' : anchor === 'right' ? 'end' : 'start' }, text.length > most ? text.slice(0, most - 1) + '…' : text);
	}
	get svg()
	{
		return '<svg xmlns="http://www.w3.org/2000/svg" width="' + this.width + '" height="' + this.height + '" viewBox="0 0 ' + this.width + ' ' + this.height +
			'" style="font:12px system-ui,sans-serif"><rect width="100%" height="100%" fill="' + colourOf('card') + '"/>' + this.out.join('\n') + '</svg>\n';
	}
}

/* Okabe and Ito's colours, told apart by the colour-blind; lightness makes three of each. */
const HUES = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b5a800', '#7a7a7a'];
function mixed(hex, other, part)
{
	const n = [1, 3, 5].map(i => Math.round(parseInt(hex.slice(i, i + 2), 16) * (1 - part) + parseInt(other.slice(i, i + 2), 16) * part));
	return '#' + n.map(v => v.toString(16).padStart(2, '0')).join('');
}
const SHADES = [...HUES, ...HUES.map(h => mixed(h, '#ffffff', 0.4)), ...HUES.map(h => mixed(h, '#000000', 0.35))];
/* cividis: dark to light, the same for the colour-blind */
const SCALE = ['#00224e', '#2c3e70', '#575d6d', '#7d7c78', '#a59c74', '#d2c060', '#fee838'];
function onScale(part)
{
	const x = Math.max(0, Math.min(0.9999, part)) * (SCALE.length - 1);
	return mixed(SCALE[Math.floor(x)], SCALE[Math.floor(x) + 1], x % 1);
}
function hash(text)
{
	let h = 2166136261;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return h >>> 0;
}
const stepOf = (of, event) => bisect(of.steps.length, i => of.steps[i] >= event);
const COLOURS = {
	'call site': (b, s) => SHADES[hash(siteName(files[lane.file], b.stack)) % SHADES.length],
	size: b => onScale(Math.log2(b.granted / 512 + 1) / 23),
	step: (b, s) => onScale((stepOf(lane, b.born) + 1) / (stepOf(lane, s.event) + 1)),
	age: (b, s) => onScale(Math.log2(1 + (lane.duration_us ? s.us - b.bornUs : s.event - b.born)) / Math.log2(2 + (lane.duration_us || lane.events_count))),
	stream: b => SHADES[b.stream % SHADES.length],
	pool: b => SHADES[b.pool % SHADES.length],
};

/* ---- the page ---- */

function make(tag, fields = {}, ...kids)
{
	const e = document.createElement(tag);
	for (const [k, v] of Object.entries(fields))
		if (k.startsWith('on'))
			e.addEventListener(k.slice(2), v);
		else if (k === 'text')
			e.textContent = v;
		else
			e.setAttribute(k, v);
	e.append(...kids);
	return e;
}
const button = (text, click, title) => make('button', { type: 'button', text, onclick: click, title: title || text });
function choice(label, list, get, set)
{
	const select = make('select', { onchange: () => { set(select.value); redraw(); } }, ...list.map(([value, text]) => make('option', { value, text })));
	select.update = () => { select.value = get(); };
	return make('label', {}, label + ' ', select);
}
function panel(title, height, hint, ...tools)
{
	const canvas = make('canvas', { tabindex: '0', role: 'img' });
	canvas.style.height = height + 'px';
	const save = make('span', { class: 'save' });
	const box = make('section', { class: 'panel' }, make('div', { class: 'bar' }, make('h3', { text: title }), ...tools, save), canvas, make('p', { class: 'hint', text: hint }));
	return { canvas, box, save, title };
}

const said = make('p', { class: 'said', role: 'status', 'aria-live': 'polite' });
const detail = make('div', { class: 'detail', role: 'status', 'aria-live': 'polite' });
const table = make('table'), frames = make('table');
const bands = make('div', { class: 'bands', role: 'listbox', 'aria-label': 'devices and policies, the highest reserved first' });
const notes = make('ul', { class: 'notes' });
const search = make('input', { type: 'search', placeholder: 'function, file or module', 'aria-label': 'search frames', oninput: () => { ui.query = search.value; redraw(); } });
const timeline = panel('Memory over time', 260, 'wheel or + and -: zoom; drag: select a span; Shift and drag, or arrows: move; click: hold the cursor (again: release); double click: zoom to the selection; 0: the whole run; p: peak; n, b: next and previous mark; [ and ]: single events',
	choice('x', [['events', 'events'], ['time', 'time']], () => ui.axis, v => { const a = eventAt(ui.x0), b = eventAt(ui.x1); ui.axis = v; ui.x0 = a ? xOf(a) : 0; ui.x1 = b >= lane.events_count ? whole() : xOf(b); clamp(); }),
	button('+', () => zoom(0.5), 'zoom in'), button('−', () => zoom(2), 'zoom out'), button('whole run', () => { ui.x0 = 0; ui.x1 = whole(); redraw(); }),
	button('peak', () => goTo(lane.peak_event)));
const map = panel('Address map', 300, 'hover or tap a block; wheel or + and -: larger and smaller; arrows up and down: move',
	choice('colour', Object.keys(COLOURS).map(c => [c, c]), () => ui.colour, v => { ui.colour = v; }));
const flame = panel('Who holds it', 300, 'hover or tap a frame; click: only what it holds (again: all)',
	choice('by', [['line', 'Python line'], ['module', 'module']], () => ui.by, v => { ui.by = v; flameTop = null; }), search,
	button('mark this moment', () => { ui.mark = ui.at; ui.other = 'mark'; redraw(); }, 'compare with this moment'),
	choice('compared with', [['', 'nothing'], ['mark', 'the marked moment'], ...head.lanes.map((l, i) => ['lane' + i, 'lane ' + (i + 1)])], () => ui.other, v => { ui.other = v; }));
const panels = [timeline, map, flame];

let wanted = false;
function redraw()
{
	if (wanted)
		return;
	wanted = true;
	requestAnimationFrame(() => {
		wanted = false;
		draw();
	});
}

function clamp()
{
	const all = whole(), width = Math.min(Math.max(ui.x1 - ui.x0, ui.axis === 'time' ? 1 : 8), all);
	ui.x0 = Math.max(0, Math.min(ui.x0, all - width));
	ui.x1 = ui.x0 + width;
}
function zoom(factor, at = (ui.x0 + ui.x1) / 2)
{
	ui.x0 = at - (at - ui.x0) * factor;
	ui.x1 = at + (ui.x1 - at) * factor;
	clamp();
	redraw();
}
function move(part)
{
	const d = (ui.x1 - ui.x0) * part;
	ui.x0 += d;
	ui.x1 += d;
	clamp();
	redraw();
}
function goTo(event)
{
	ui.at = Math.max(0, Math.min(event, lane.events_count - 1));
	ui.pinned = true;
	const x = xOf(ui.at), width = ui.x1 - ui.x0;
	if (x < ui.x0 || x > ui.x1) {
		ui.x0 = x - width / 2;
		ui.x1 = x + width / 2;
		clamp();
	}
	redraw();
}

/* ---- the timeline ---- */

const LEFT = 74, TOP = 22, FOOT = 22;
let seen; /* columns as drawn */
const pixel = x => LEFT + (x - ui.x0) / (ui.x1 - ui.x0) * (timeline.width - LEFT - 6);
const position = px => ui.x0 + (px - LEFT) / (timeline.width - LEFT - 6) * (ui.x1 - ui.x0);

function ticks(most, count)
{
	const rough = most / count || 1, power = Math.pow(2, Math.floor(Math.log2(rough)));
	return power * (rough / power > 1.5 ? 2 : 1);
}
function decimal(span, count)
{
	const rough = span / count || 1, power = Math.pow(10, Math.floor(Math.log10(rough))), m = rough / power;
	return power * (m > 5 ? 10 : m > 2 ? 5 : m > 1 ? 2 : 1);
}

function drawTimeline(pen)
{
	const W = pen.width, H = pen.height, ink = colourOf('fg'), grid = colourOf('line'), width = Math.max(1, Math.round(W - LEFT - 6)), floor = H - FOOT;
	timeline.width = W;
	seen = columnsOf(lane, ui.x0, ui.x1, width);
	let top = Math.max(1, ...seen.high[RESERVED]);
	for (const line of [lane.limit_bytes, lane.card_bytes])
		if (line && line < 1.25 * top)
			top = Math.max(top, line);
	top *= 1.04;
	const y = v => floor - v / top * (floor - TOP), xs = Array.from({ length: width + 1 }, (_, i) => LEFT + i);
	for (let v = 0, step = ticks(top, Math.max(2, H / 50)); v <= top; v += step) {
		pen.line(LEFT, y(v), W - 6, y(v), grid);
		pen.text(LEFT - 6, y(v) + 4, size(v), ink, 'right');
	}
	const step = decimal(ui.x1 - ui.x0, W / 120);
	for (let x = Math.ceil(ui.x0 / step) * step; x <= ui.x1; x += step)
		pen.text(Math.min(pixel(x), W - 40), H - 6, ui.axis === 'time' ? duration(x) : grouped(x), ink, 'center');
	/* free memory by cause: what the samples say of it, around the exact sums */
	const held = new Float64Array(width);
	for (let i = 0; i < width; i++) {
		const at = Math.max(0, bisect(lane.losses.length, k => lane.losses[k][0] > seen.edges[i]) - 1), [, kept, releasable] = lane.losses[at] || [0, 0, 0];
		held[i] = seen.high[2][i] + (seen.high[RESERVED][i] - seen.high[2][i]) * (kept + releasable ? kept / (kept + releasable) : 0);
	}
	const layers = [[seen.high[RESERVED], 'releasable'], [held, 'kept'], [seen.high[2], 'waiting'], [seen.high[1], 'rounding'], [seen.high[0], 'requested']];
	for (const [values, name] of layers)
		pen.area(xs, Array.from(values, y), floor, colourOf('v-' + name), 1);
	pen.area(xs, Array.from(seen.low[0], y), floor, colourOf('v-low'), 0.55);
	pen.outline(xs, Array.from(seen.high[RESERVED], y), colourOf('v-edge'));
	for (const [bytes, name, dash] of [[lane.limit_bytes, 'limit', [6, 3]], [lane.card_bytes, 'card', [2, 3]]])
		if (bytes && bytes <= top) {
			pen.line(LEFT, y(bytes), W - 6, y(bytes), colourOf('v-limit'), dash, 1.5);
			pen.text(W - 10, y(bytes) - 4, name + ' ' + size(bytes), ink, 'right');
		}
	drawMarks(pen, floor, ink);
	if (ui.sel) {
		const a = Math.max(LEFT, pixel(xOf(ui.sel[0]))), b = Math.min(W - 6, pixel(xOf(ui.sel[1])));
		if (b > a) {
			pen.rect(a, TOP, b - a, floor - TOP, colourOf('accent'), 0.18);
			pen.frame(a, TOP, b - a, floor - TOP, colourOf('accent'));
		}
	}
	const at = pixel(xOf(ui.at));
	if (at >= LEFT && at <= W)
		pen.line(at, TOP - 6, at, floor, ink, ui.pinned ? [] : [3, 2], 1.5);
	if (!seen.exact)
		pen.text(LEFT + 6, TOP + 12, root.dataset.served ? 'reading …' : missing(), ink);
}
const missing = () => lane.cache.get(pieceOf(lane, eventAt(ui.x0)))?.value === null ? 'single events of this part are not in this file: cufrag view shows them' : 'reading …';

const SIGNS = [['', 'grid'], ['▼', 'v-refused'], ['◇', 'v-trim'], ['○', 'v-returned']];
function drawMarks(pen, floor, ink)
{
	let last = -9;
	const from = bisect(lane.marks.length, i => lane.marks[i].event >= eventAt(ui.x0));
	for (let i = from; i < lane.marks.length; i++) {
		const m = lane.marks[i], x = pixel(ui.axis === 'time' ? m.us : m.event);
		if (x > pen.width)
			break;
		if (m.what === 0 && x - last < 5)
			continue;
		if (m.what === 0) {
			pen.line(x, TOP - 4, x, TOP + 2, ink);
			last = x;
		} else {
			pen.rect(x - 3, TOP - 12, 6, 6, colourOf(SIGNS[m.what][1]));
			pen.line(x, TOP - 6, x, m.what === 1 ? floor : TOP + 4, colourOf(SIGNS[m.what][1]), m.what === 1 ? [3, 3] : []);
		}
	}
	for (const n of head.notes)
		if (n.lane === lane.number) {
			const x = pixel(xOf(n.event));
			if (x >= LEFT && x <= pen.width) {
				pen.rect(x - 6, 0, 12, 12, colourOf('accent'));
				pen.text(x, 10, '!', colourOf('card'), 'center');
			}
		}
}

/* ---- the address map ---- */

let state = null, stateFor = '', rows = null;
const ROW = 16;

/* Ranges one behind the other, in rows of equal bytes. */
function drawMap(pen)
{
	const W = pen.width, H = pen.height, free = colourOf('v-free'), card = colourOf('card');
	rows = null;
	if (!state)
		return;
	let total = 0;
	const starts = state.ranges.map(r => { const at = total; total += r.end - r.start; return at; });
	const count = Math.max(1, Math.floor(H / ROW)), perRow = Math.max(1, total / (count * ui.mapScale));
	const lines = Math.ceil(total / perRow);
	ui.mapTop = Math.max(0, Math.min(ui.mapTop, lines - count));
	rows = { starts, perRow, W, total };
	const band = (from, to, fill, gap) => {
		const first = Math.max(Math.floor(from / perRow), Math.floor(ui.mapTop));
		for (let r = first; r * perRow < to && (r - ui.mapTop) * ROW < H; r++) {
			const a = Math.max(from, r * perRow) - r * perRow, b = Math.min(to, (r + 1) * perRow) - r * perRow;
			pen.rect(a / perRow * W, (r - ui.mapTop) * ROW + 1, Math.max((b - a) / perRow * W - gap, 0.3), ROW - 3, fill);
		}
	};
	state.ranges.forEach((r, i) => band(starts[i], starts[i] + r.end - r.start, free, 0));
	const colour = COLOURS[ui.colour], query = ui.query.toLowerCase(), file = files[lane.file];
	let i = 0;
	for (const b of state.blocks) {
		while (i < state.ranges.length - 1 && state.ranges[i].end <= b.addr)
			i++;
		const at = starts[i] + b.addr - state.ranges[i].start;
		const dim = query && !stackText(file, b.stack).toLowerCase().includes(query);
		const visible = (at + b.granted) / perRow >= ui.mapTop && at / perRow <= ui.mapTop + count;
		if (visible)
			band(at, at + b.granted, dim ? mixed(colour(b, state), '#888888', 0.8) : colour(b, state), b.granted / perRow * W > 3 ? 1 : 0);
		if (visible && b.state === WAITING)
			pen.frame(at % perRow / perRow * W, (Math.floor(at / perRow) - ui.mapTop) * ROW + 2, Math.max(2, b.granted / perRow * W - 2), ROW - 5, colourOf('v-refused'), 2);
		if (b === chosen)
			pen.frame(at % perRow / perRow * W, (Math.floor(at / perRow) - ui.mapTop) * ROW, Math.min(W, Math.max(3, b.granted / perRow * W)), ROW - 1, colourOf('fg'), 2);
	}
	state.ranges.forEach((r, k) => {
		const at = starts[k] / perRow;
		if (at >= ui.mapTop && at < ui.mapTop + count && (r.end - r.start) / perRow * W > 4)
			pen.rect(at % 1 * W, (Math.floor(at) - ui.mapTop) * ROW, 1.5, ROW - 1, colourOf('fg'));
	});
	if (!state.exact)
		pen.text(6, 14, 'at event ' + grouped(state.event) + ': only the state before its part is in this file', colourOf('fg'));
}

/* The block or hole at a pixel of the map. */
function hit(x, y)
{
	if (!rows || !state)
		return null;
	const at = (Math.floor(y / ROW + ui.mapTop) + x / rows.W) * rows.perRow;
	const i = bisect(state.ranges.length, k => rows.starts[k] > at) - 1;
	if (i < 0 || at >= rows.total)
		return null;
	const range = state.ranges[i], addr = range.start + at - rows.starts[i];
	const k = bisect(state.blocks.length, n => state.blocks[n].addr > addr) - 1, b = state.blocks[k];
	if (b && addr < b.addr + b.granted)
		return { block: b, range };
	const low = b ? Math.max(range.start, b.addr + b.granted) : range.start, next = state.blocks[k + 1];
	return { hole: { start: low, end: Math.min(range.end, next ? next.addr : range.end) }, range };
}

const stackTexts = new WeakMap();
function stackText(file, stack)
{
	let all = stackTexts.get(file);
	if (!all)
		stackTexts.set(file, all = []);
	return all[stack] ??= (file.stackList?.[stack] || []).map(f => file.frameNames[f]).join('\n');
}

let chosen = null;
async function showBlock(at)
{
	const b = at?.block;
	chosen = b || null;
	redraw();
	detail.replaceChildren();
	if (!at)
		return;
	const facts = make('dl'), fact = (k, v) => facts.append(make('dt', { text: k }), make('dd', { text: v }));
	if (!b) {
		const busy = state.blocks.some(x => x.addr >= at.range.start && x.addr < at.range.end);
		fact('free', size(at.hole.end - at.hole.start) + (busy ? ', non-releasable: blocks live in this segment' : ', releasable: nothing lives in this segment'));
		fact('segment', '0x' + at.range.start.toString(16) + ', ' + size(at.range.end - at.range.start));
		detail.append(facts);
		return;
	}
	const file = await names(lane), list = file.stackList[b.stack] || [];
	fact('size', size(b.granted) + (b.granted !== b.bytes ? ' (' + grouped(b.bytes) + ' B requested)' : ''));
	fact('address', '0x' + b.addr.toString(16) + ', in a segment of ' + size(at.range.end - at.range.start));
	fact('allocated', 'event ' + grouped(b.born) + ', ' + duration(b.bornUs) + (lane.steps.length ? ', step ' + (stepOf(lane, b.born) + 1) : ''));
	fact('age', (lane.duration_us ? duration(state.us - b.bornUs) + ', ' : '') + grouped(state.event - b.born) + ' events');
	fact('stream, pool', b.stream + ', ' + b.pool);
	const freed = make('dd', { text: '…' });
	facts.append(make('dt', { text: 'freed' }), freed);
	detail.append(facts, make('p', { class: 'site', text: siteName(file, b.stack) }), make('ol', { class: 'stack' }, ...list.map(f => make('li', { text: file.frameNames[f] }))));
	const end = await endOf(lane, b, state.event);
	const when = e => 'event ' + grouped(e[0]) + ', ' + duration(e[1]);
	freed.textContent = end.requested && end.completed ? when(end.requested) + '; then work of another stream keeps it for ' + duration(end.completed[1] - end.requested[1]) + ', until ' + when(end.completed) :
		end.completed ? when(end.completed) : end.requested ? when(end.requested) + '; another stream still uses it at the end' : 'not in this recording';
	detail.dataset.block = b.born;
}

/* ---- the flame graph ---- */

let flameTop = null, flameFor = '', flameBoxes = [], flameRoot = null, flameSay = '', flameTurn = 0;

async function fillFlame(key)
{
	const turn = ++flameTurn, still = () => turn === flameTurn;
	flameFor = key;
	const moment = async of => ui.sel ? weightsOver(of, Math.floor(ui.sel[0]), Math.ceil(ui.sel[1]), still) : weightsAt(of, Math.min(ui.at, of.events_count - 1));
	const sides = [];
	if (ui.other === 'mark' && ui.mark !== null)
		sides.push({ file: await names(lane), weights: await weightsAt(lane, ui.mark) });
	if (ui.other.startsWith('lane')) {
		const other = head.lanes[+ui.other.slice(4)];
		sides.push({ file: await names(other), weights: await moment(other) });
	}
	const weights = await moment(lane);
	sides.push({ file: await names(lane), weights });
	if (!still())
		return;
	flameSay = ui.sel ? 'average over the selection' + (weights.sampled ? ', of ' + weights.sampled + ' moments' : '') : 'after event ' + grouped(ui.at);
	if (sides.length > 1)
		flameSay += ', compared with ' + (ui.other === 'mark' ? 'event ' + grouped(ui.mark) : head.lanes[+ui.other.slice(4)].name) + ': red is more, blue less';
	flameTop = frameTree(sides);
	flameTop.differs = sides.length > 1;
	flameRoot = null;
	const deep = node => 1 + Math.max(0, ...[...node.kids.values()].map(deep));
	flame.canvas.style.height = Math.max(4, Math.min(deep(flameTop), 60)) * 18 + 4 + 'px';
	redraw();
	showFrames();
}
const weightOf = node => flameTop.differs ? Math.max(node.value, node.base) : node.value;

function flameColour(node)
{
	if (!flameTop.differs)
		return mixed(HUES[[1, 5, 6, 3][hash(moduleOf(node.name)) % 4]], '#ffffff', 0.25 + hash(node.name) % 5 * 0.06);
	const d = node.value - node.base, part = Math.min(1, Math.abs(d) / Math.max(node.value, node.base, 1));
	return mixed('#d9d9d9', d > 0 ? '#d73027' : '#2166ac', Math.sqrt(part));
}

function drawFlame(pen)
{
	const W = pen.width, H = pen.height, top = flameRoot || flameTop, high = 18, query = ui.query.toLowerCase();
	flameBoxes = [];
	if (!top || !weightOf(top)) {
		pen.text(6, 16, flameTop ? 'nothing is held' : 'reading …', colourOf('fg'));
		return;
	}
	const put = (node, x, w, depth) => {
		if (w < 0.7 || depth * high > H)
			return;
		const found = query && node.name.toLowerCase().includes(query);
		pen.rect(x, depth * high, Math.max(w - 0.7, 0.5), high - 1, found ? '#c51bd2' : node === flameTop ? colourOf('line') : flameColour(node));
		if (w > 24)
			pen.text(x + 4, depth * high + 13, node === flameTop ? 'all: ' + size(node.value) : node.name, found ? '#fff' : node === flameTop ? colourOf('fg') : '#111', 'start', w - 8);
		flameBoxes.push({ node, x, w, y: depth * high });
		let at = x;
		const scale = w / Math.max(weightOf(node), [...node.kids.values()].reduce((sum, kid) => sum + weightOf(kid), 0));
		for (const kid of [...node.kids.values()].sort((a, b) => weightOf(b) - weightOf(a))) {
			put(kid, at, weightOf(kid) * scale, depth + 1);
			at += weightOf(kid) * scale;
		}
	};
	put(top, 0, W, 0);
}
function frameText(node)
{
	const all = flameTop.value || 1;
	return node.name + ': ' + size(node.value) + ' (' + (100 * node.value / all).toFixed(1) + ' %)' + (flameTop.differs ? ', before ' + size(node.base) + ', ' + (node.value >= node.base ? '+' : '') + size(node.value - node.base) : '');
}
function matches(node)
{
	return node.name.toLowerCase().includes(ui.query.toLowerCase()) ? node.value : [...node.kids.values()].reduce((sum, kid) => sum + matches(kid), 0);
}

/* For those who do not see the canvas: the same as tables. */
function showFrames()
{
	const flat = new Map();
	const walk = (node, path) => {
		for (const kid of node.kids.values()) {
			if (!path.has(kid.name)) {
				const sum = flat.get(kid.name) || { name: kid.name, value: 0, base: 0 };
				sum.value += kid.value;
				sum.base += kid.base;
				flat.set(kid.name, sum);
			}
			walk(kid, new Set(path).add(kid.name));
		}
	};
	walk(flameTop, new Set());
	fillTable(frames, ['frame', 'holds', ...(flameTop.differs ? ['before'] : [])], [...flat.values()].sort((a, b) => weightOf(b) - weightOf(a)).slice(0, 25).map(n => [n.name, size(n.value), ...(flameTop.differs ? [size(n.base)] : [])]));
}
function fillTable(to, heads, list)
{
	to.replaceChildren(make('thead', {}, make('tr', {}, ...heads.map(h => make('th', { scope: 'col', text: h })))),
		make('tbody', {}, ...list.map(row => make('tr', {}, ...row.map(cell => cell instanceof Node ? make('td', {}, cell) : make('td', { text: cell }))))));
}

/* ---- drawing all of it ---- */

let stateTurn = 0, usual = !location.hash; /* the colours are not yet chosen */
async function fillState(key)
{
	const turn = ++stateTurn;
	stateFor = key;
	await names(lane);
	if (usual && files[lane.file].stackList.length < 2)
		ui.colour = 'size';
	usual = false;
	const next = await stateAt(lane, ui.at);
	if (turn !== stateTurn)
		return;
	state = next;
	chosen = null;
	const [requested, allocated, active, reserved] = state.totals;
	said.textContent = 'event ' + grouped(state.event) + ' of ' + grouped(lane.events_count) + ', ' + duration(state.us) + (lane.steps.length ? ', step ' + (stepOf(lane, state.event) + 1) : '') +
		': reserved ' + size(reserved) + ', allocated ' + size(allocated) + ', requested ' + size(requested) + ', free ' + size(reserved - active) + '; ' + grouped(state.blocks.length) + ' blocks in ' + grouped(state.ranges.length) + ' segments' + (ui.pinned ? ' (held)' : '');
	fillTable(table, ['block', 'size', 'age', 'call site'], state.blocks.slice().sort((a, b) => b.granted - a.granted).slice(0, 25).map(b =>
		[button('0x' + b.addr.toString(16), () => showBlock({ block: b, range: state.ranges.find(r => r.start <= b.addr && b.addr < r.end) })), size(b.granted), grouped(state.event - b.born) + ' events', siteName(files[lane.file], b.stack)]));
	redraw();
}

/* Is a panel to be drawn again? A moved timeline leaves the others as they are. */
function changed(of, look, facts)
{
	const box = of.canvas.getBoundingClientRect(), now = [look, box.width, box.height, window.devicePixelRatio, ...facts];
	const same = of.drawn?.length === now.length && of.drawn.every((v, i) => v === now[i]);
	of.drawn = now;
	return !same;
}

let late = 0;
function draw()
{
	const look = colourOf('fg') + ui.query + '/';
	drawTimeline(new CanvasPen(timeline.canvas));
	if (changed(map, look, [state, chosen, ui.colour, ui.mapScale, ui.mapTop]))
		drawMap(new CanvasPen(map.canvas));
	if (flameTop && changed(flame, look, [flameTop, flameRoot]))
		drawFlame(new CanvasPen(flame.canvas));
	flame.box.querySelector('.hint').textContent = (flameTop ? flameSay + (ui.query ? '; found: ' + size(matches(flameTop)) : '') + '. ' : '') + 'hover or tap a frame; click: only what it holds (again: all)';
	const key = lane.number + ':' + ui.at;
	if (key !== stateFor)
		fillState(key);
	const holds = key + ':' + (ui.sel || '') + ':' + ui.other + ':' + (ui.other === 'mark' ? ui.mark : '') + ':' + ui.by;
	if (holds !== flameFor) {
		clearTimeout(late); /* a moment of rest: the cursor moves faster than trees grow */
		late = setTimeout(() => fillFlame(holds), flameTop ? 60 : 0);
	}
	for (const select of root.querySelectorAll('select'))
		select.update?.();
	keepLink();
}

/* ---- the address of the page holds the view ---- */

let linkTimer = 0;
function link()
{
	const w = new URLSearchParams({ lane: ui.lane, x: ui.x0.toFixed(1) + '-' + ui.x1.toFixed(1), at: Math.round(ui.at) });
	for (const [k, v, usual] of [['axis', ui.axis, 'events'], ['colour', ui.colour, 'call site'], ['by', ui.by, 'line'], ['q', ui.query, ''], ['less', ui.other, ''], ['mark', ui.mark ?? '', ''], ['sel', ui.sel ? ui.sel.map(Math.round).join('-') : '', ''], ['held', ui.pinned ? 1 : '', '']])
		if (v !== usual)
			w.set(k, v);
	return '#' + w;
}
function keepLink()
{
	clearTimeout(linkTimer);
	linkTimer = setTimeout(() => { if (location.hash !== link()) history.replaceState(null, '', link()); }, 150);
}
function readLink()
{
	const w = new URLSearchParams(location.hash.slice(1)), pair = k => w.get(k)?.split('-').map(Number);
	const one = (k, list) => list.includes(w.get(k)) ? w.get(k) : list[0];
	choose(Math.max(0, Math.min(head.lanes.length - 1, +w.get('lane') || 0)), true);
	if (!w.has('x'))
		return;
	ui.axis = one('axis', ['events', 'time']);
	ui.colour = one('colour', Object.keys(COLOURS));
	ui.by = one('by', ['line', 'module']);
	ui.query = search.value = w.get('q') || '';
	ui.at = Math.max(0, Math.min(lane.events_count - 1, Math.round(+w.get('at')) || 0));
	ui.mark = w.has('mark') ? +w.get('mark') || 0 : null;
	ui.other = w.get('less') === 'mark' || head.lanes['' + w.get('less')?.slice(4)] ? w.get('less') : '';
	ui.pinned = w.has('held');
	const x = pair('x'), sel = pair('sel');
	if (x.length === 2 && x.every(Number.isFinite))
		[ui.x0, ui.x1] = x;
	ui.sel = sel?.length === 2 && sel.every(Number.isFinite) ? sel : null;
	clamp();
}

/* ---- choosing a lane ---- */

function choose(number, first)
{
	const part = lane ? [ui.x0 / whole(), ui.x1 / whole(), ui.at / lane.events_count] : [0, 1, 0];
	ui.lane = number;
	lane = head.lanes[number];
	ui.x0 = part[0] * whole();
	ui.x1 = part[1] * whole();
	ui.at = first ? lane.peak_event : Math.floor(part[2] * lane.events_count);
	ui.pinned = !!first;
	ui.sel = null;
	state = flameTop = flameRoot = chosen = null;
	stateFor = flameFor = '';
	detail.replaceChildren();
	for (const b of bands.children)
		b.setAttribute('aria-selected', b.dataset.lane === String(number));
	clamp();
	redraw();
}

const bandDraws = [];
function drawBands() { bandDraws.forEach(d => d()); }
function fillBands()
{
	const order = head.lanes.slice().sort((a, b) => b.peak_reserved_bytes - a.peak_reserved_bytes), most = order[0].peak_reserved_bytes;
	for (const l of order) {
		const canvas = make('canvas'), band = make('button', { type: 'button', role: 'option', 'data-lane': l.number, onclick: () => choose(l.number) },
			make('span', { class: 'name', text: l.number + 1 + '. ' + l.name }), make('span', { class: 'most', text: size(l.peak_reserved_bytes) + (l.refused_count ? ', ' + grouped(l.refused_count) + ' refused' : '') }), canvas);
		bands.append(band);
		bandDraws.push(() => {
			const pen = new CanvasPen(canvas), width = pen.width, keep = ui.axis;
			ui.axis = 'events';
			const c = columnsOf(l, 0, l.events_count, Math.min(width, 400)), xs = Array.from({ length: c.high[0].length + 1 }, (_, i) => i * width / c.high[0].length);
			ui.axis = keep;
			for (const [s, name] of [[RESERVED, 'releasable'], [ALLOCATED, 'requested']])
				pen.area(xs, Array.from(c.high[s], v => pen.height * (1 - v / most)), pen.height, colourOf('v-' + name), 1);
		});
	}
	bands.hidden = order.length < 2;
}

/* ---- what the hands do ---- */

function offset(e, canvas)
{
	const box = canvas.getBoundingClientRect();
	return [e.clientX - box.left, e.clientY - box.top];
}

const fingers = new Map();
let drag = null;
timeline.canvas.addEventListener('pointerdown', e => {
	const [x] = offset(e, timeline.canvas);
	timeline.canvas.setPointerCapture(e.pointerId);
	fingers.set(e.pointerId, x);
	drag = { x, from: position(x), x0: ui.x0, x1: ui.x1, pan: e.shiftKey || e.button === 1 || e.pointerType === 'touch', moved: false };
	if (fingers.size === 2) {
		const [a, b] = [...fingers.values()];
		drag = { pinch: Math.abs(a - b) || 1, middle: position((a + b) / 2), x0: ui.x0, x1: ui.x1 };
	}
});
timeline.canvas.addEventListener('pointermove', e => {
	const [x] = offset(e, timeline.canvas);
	if (fingers.has(e.pointerId))
		fingers.set(e.pointerId, x);
	if (drag?.pinch && fingers.size === 2) {
		const [a, b] = [...fingers.values()], factor = drag.pinch / (Math.abs(a - b) || 1);
		ui.x0 = drag.middle - (drag.middle - drag.x0) * factor;
		ui.x1 = drag.middle + (drag.x1 - drag.middle) * factor;
		clamp();
	} else if (drag && !drag.pinch) {
		drag.moved ||= Math.abs(x - drag.x) > 3;
		if (drag.moved && drag.pan) {
			const d = (drag.x - x) / (timeline.width - LEFT - 6) * (drag.x1 - drag.x0);
			ui.x0 = drag.x0 + d;
			ui.x1 = drag.x1 + d;
			clamp();
		} else if (drag.moved) {
			ui.sel = [eventAt(Math.min(drag.from, position(x))), eventAt(Math.max(drag.from, position(x)))];
		}
	} else if (!ui.pinned && !drag) {
		pointAt(x);
	}
	redraw();
});
function pointAt(px)
{
	ui.at = Math.max(0, Math.min(lane.events_count - 1, eventAt(position(px)) - (ui.axis === 'time' ? 1 : 0)));
}
function letGo(e)
{
	fingers.delete(e.pointerId);
	if (drag && !drag.pinch && !drag.moved && e.type === 'pointerup') {
		if (ui.sel) {
			ui.sel = null;
		} else {
			const again = ui.pinned && Math.abs(pixel(xOf(ui.at)) - drag.x) < 4;
			ui.pinned = !again;
		}
		pointAt(drag.x);
	}
	if (!fingers.size)
		drag = null;
	redraw();
}
timeline.canvas.addEventListener('pointerup', letGo);
timeline.canvas.addEventListener('pointercancel', letGo);
timeline.canvas.addEventListener('dblclick', () => {
	if (ui.sel)
		[ui.x0, ui.x1] = ui.sel.map(xOf);
	clamp();
	redraw();
});
timeline.canvas.addEventListener('wheel', e => {
	e.preventDefault();
	if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
		move((e.deltaX || e.deltaY) / 800);
	else
		zoom(Math.pow(1.0018, e.deltaY), position(offset(e, timeline.canvas)[0]));
}, { passive: false });

function nextMark(direction)
{
	const all = [...lane.marks.filter(m => m.what || direction), ...head.notes.filter(n => n.lane === lane.number)].map(m => m.event).sort((a, b) => a - b);
	const found = direction > 0 ? all.find(e => e > ui.at) : all.reverse().find(e => e < ui.at);
	if (found !== undefined)
		goTo(found);
}
const KEYS = {
	'+': () => zoom(0.5, xOf(ui.at)), '=': () => zoom(0.5, xOf(ui.at)), '-': () => zoom(2, xOf(ui.at)), ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1),
	0: () => { ui.x0 = 0; ui.x1 = whole(); }, Home: () => goTo(0), End: () => goTo(lane.events_count - 1), p: () => goTo(lane.peak_event),
	'[': () => goTo(ui.at - 1), ']': () => goTo(ui.at + 1), PageUp: () => goTo(ui.at - Math.ceil((eventAt(ui.x1) - eventAt(ui.x0)) / 10)), PageDown: () => goTo(ui.at + Math.ceil((eventAt(ui.x1) - eventAt(ui.x0)) / 10)),
	n: () => nextMark(1), b: () => nextMark(-1), Escape: () => { ui.sel = null; ui.pinned = false; }, s: () => { ui.sel = ui.sel ? [Math.min(ui.sel[0], ui.at), Math.max(ui.sel[0], ui.at)] : [ui.at, ui.at + 1]; },
	m: () => { ui.mark = ui.at; ui.other = 'mark'; },
};
timeline.canvas.addEventListener('keydown', e => {
	if (e.ctrlKey || e.metaKey || e.altKey || !KEYS[e.key])
		return;
	e.preventDefault();
	KEYS[e.key]();
	redraw();
});

let mapHover = 0;
map.canvas.addEventListener('pointermove', e => {
	const [x, y] = offset(e, map.canvas);
	clearTimeout(mapHover);
	mapHover = setTimeout(() => { const at = hit(x, y); if (at?.block !== chosen || !at?.block) showBlock(at); }, 30);
});
map.canvas.addEventListener('pointerdown', e => { showBlock(hit(...offset(e, map.canvas))); ui.pinned = true; });
function scaleMap(factor, y = map.canvas.clientHeight / 2)
{
	const line = y / ROW, at = (ui.mapTop + line) / ui.mapScale;
	ui.mapScale = Math.max(1, Math.min(4096, ui.mapScale * factor));
	ui.mapTop = at * ui.mapScale - line;
	redraw();
}
map.canvas.addEventListener('wheel', e => {
	e.preventDefault();
	if (e.shiftKey) {
		ui.mapTop += e.deltaY / 40;
		redraw();
	} else {
		scaleMap(Math.pow(1.0018, -e.deltaY), offset(e, map.canvas)[1]);
	}
}, { passive: false });
map.canvas.addEventListener('keydown', e => {
	const keys = { '+': () => scaleMap(1.5), '-': () => scaleMap(1 / 1.5), ArrowDown: () => { ui.mapTop += 2; }, ArrowUp: () => { ui.mapTop -= 2; } };
	if (keys[e.key]) {
		e.preventDefault();
		keys[e.key]();
		redraw();
	}
});

const frameAt = e => {
	const [x, y] = offset(e, flame.canvas);
	return flameBoxes.find(b => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + 18)?.node;
};
flame.canvas.addEventListener('pointermove', e => {
	const node = frameAt(e);
	if (node)
		detail.replaceChildren(make('p', { text: frameText(node) }));
});
flame.canvas.addEventListener('click', e => {
	const node = frameAt(e);
	flameRoot = node && node !== flameRoot && node !== flameTop ? node : null;
	redraw();
});

/* ---- pictures and rows ---- */

function download(name, type, text)
{
	const a = make('a', { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
const csvCell = v => /^[=+@-]/.test(v) && isNaN(v) ? "'" + v : /[",\n\r]/.test(v) ? '"' + String(v).replace(/"/g, '""') + '"' : v;
const csvOf = list => list.map(row => row.map(csvCell).join(',') + '\n').join('');
const DRAW = [drawTimeline, drawMap, drawFlame];
const ROWS = [
	() => [['first_event', ...SERIES.flatMap(s => [s + '_min_bytes', s + '_max_bytes'])], ...Array.from(seen.high[0], (_, i) => [seen.edges[i], ...SERIES.flatMap((_s, s) => [seen.low[s][i], seen.high[s][i]])])],
	() => [['address', 'granted_bytes', 'requested_bytes', 'born_event', 'born_us', 'stream', 'pool', 'waiting', 'call_site'], ...(state?.blocks || []).map(b => ['0x' + b.addr.toString(16), b.granted, b.bytes, b.born, b.bornUs, b.stream, b.pool, b.state === WAITING ? 1 : 0, siteName(files[lane.file], b.stack)])],
	() => {
		const list = [['stack', 'bytes', 'before_bytes']];
		const walk = (node, path) => {
			list.push([path, Math.round(node.value), Math.round(node.base)]);
			for (const kid of node.kids.values())
				walk(kid, path + ';' + kid.name);
		};
		if (flameTop)
			walk(flameTop, 'all');
		return list;
	},
];
function pictureOf(i)
{
	const canvas = panels[i].canvas, pen = new SvgPen(canvas.clientWidth, canvas.clientHeight);
	DRAW[i](pen);
	return pen.svg;
}
panels.forEach((p, i) => p.save.append(
	button('SVG', () => download('cufrag-' + ['time', 'map', 'flame'][i] + '.svg', 'image/svg+xml', pictureOf(i)), 'save the picture'),
	button('CSV', () => download('cufrag-' + ['time', 'map', 'flame'][i] + '.csv', 'text/csv', csvOf(ROWS[i]())), 'save the rows')));

/* ---- begin ---- */

await Promise.all(head.lanes.map(openLane));
timeline.canvas.setAttribute('aria-label', 'requested, allocated and reserved memory over the run; the line above says what is at the cursor');
map.canvas.setAttribute('aria-label', 'segments, blocks and holes by address at the cursor; the table below lists the largest');
flame.canvas.setAttribute('aria-label', 'call stacks by what they hold; the table below lists the largest');
const legend = make('p', { class: 'legend' }, ...[['requested', 'requested'], ['rounding', 'rounding'], ['waiting', 'waiting for a stream'], ['kept', 'free, non-releasable'], ['releasable', 'free, releasable']].map(([k, text]) => make('span', { class: 'k-' + k, text })),
	...[['refused', 'refused request'], ['trim', 'empty_cache'], ['returned', 'returned to serve a request']].map(([k, text]) => make('span', { class: 'k-' + k, text })));
for (const n of head.notes)
	notes.append(make('li', {}, button('event ' + grouped(n.event), () => { choose(n.lane); goTo(n.event); }), ' ' + n.text));
timeline.box.querySelector('.bar').after(legend);
root.append(make('h2', { text: 'Move in it' }), bands, said, timeline.box, notes, make('div', { class: 'two' }, map.box, make('section', { class: 'panel' }, make('h3', { text: 'At the pointer' }), detail)), flame.box,
	make('details', {}, make('summary', { text: 'the same as tables' }), make('div', { class: 'scroll' }, table), make('div', { class: 'scroll' }, frames)));
root.hidden = false;
fillBands();
readLink();
drawBands();
addEventListener('resize', () => { drawBands(); redraw(); });
addEventListener('hashchange', () => { if (location.hash && location.hash !== link()) { readLink(); redraw(); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawBands(); redraw(); });
redraw();
/* for tests and for the console */
root.view = { head, ui, choose, goTo, zoom, redraw, columnsOf, stateAt, endOf, hit, showBlock, pictureOf, rowsOf: i => ROWS[i](), csvOf: i => csvOf(ROWS[i]()), get state() { return state; }, get seen() { return seen; }, get flame() { return flameTop; }, draw, weightsOver, weightsAt, piece };
root.dataset.ready = '1';
})().catch(error => {
	const root = document.getElementById('live');
	root.hidden = false;
	root.textContent = 'This page could not be opened: ' + error.message;
	throw error;
});
