/* ---- events and states from their blobs ---- */

const EV = { ALLOC: 0, FREE: 1, FREE_REQUESTED: 2, FREE_COMPLETED: 3, TRIM: 4, REFUSED: 5 };
const DROPPED = 3, SAMPLES = 48;

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

/* null: it is not in this file */
async function blob(i)
{
	const element = document.getElementById('b' + i), answer = !element && root.dataset.served ? await fetch('b/' + i) : null;
	if (answer && !answer.ok)
		throw new Error('cufrag view is not running any more');
	if (!element && !answer)
		return null;
	const bytes = element ? base64(element.textContent) : new Uint8Array(await answer.arrayBuffer());
	if (!(element ? element.type : answer.headers.get('content-type')).endsWith('zlib'))
		return bytes;
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
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

/* ---- pieces ---- */

/* The state before piece k. */
function readKeys(lane, k, program, places)
{
	const p = columns(program)[0], q = columns(places)[0], first = k * lane.piece_events, us = p.u();
	const key = { first, us, totals: [q.u(), q.u(), q.u(), q.u()], blocks: [], ranges: [] };
	let slot = -1, addr = 0, last = 0;
	for (let d; (d = p.u());) {
		slot += d;
		const b = { slot, born: first - p.u(), bornUs: us - p.u(), bytes: p.u(), stack: p.u(), stream: p.u(), pool: p.u(), state: q.u(), addr: 0, granted: 0 };
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
function readPiece(key, program, places)
{
	const [op, time, asked, slots] = columns(program), [ref, addrs, extra, change, correct] = columns(places);
	const n = op.bytes.length, first = key.first, dict = [], spare = [];
	const out = { key, first, n, op: op.bytes, us: new Float64Array(n), slot: new Int32Array(n).fill(-1), request: new Array(n),
		      addr: new Float64Array(n), granted: new Float64Array(n), series: [0, 1, 2, 3].map(() => new Float64Array(n)), changes: [] };
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
		if (what === EV.ALLOC || what === EV.REFUSED)
			out.request[i] = last = last.map(v => v + asked.step());
		if (what === EV.ALLOC) {
			const explicit = slots.u(), slot = explicit ? explicit - 1 : spare.pop(), bytes = last[0], r = ref.u();
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
const keyCache = new Map(), pieceCache = new Map();
function cached(cache, name, limit, make)
{
	const found = cache.get(name) || make();
	cache.delete(name);
	cache.set(name, found);
	if (cache.size > limit)
		cache.delete(cache.keys().next().value);
	return found;
}
const programOf = lane => head.lanes[lane.program].pieces;
const pieceOf = (lane, event) => Math.floor(event / lane.piece_events);
function keys(lane, k)
{
	return cached(keyCache, lane.number + ',' + k, 48, async () => readKeys(lane, k, await blob(programOf(lane)[4 * k]), await blob(lane.pieces[4 * k + 2])));
}
/* null: its single events are not in this file */
function piece(lane, k)
{
	return cached(pieceCache, lane.number + ',' + k, 12, async () => {
		const [key, program, places] = await Promise.all([keys(lane, k), blob(programOf(lane)[4 * k + 1]), blob(lane.pieces[4 * k + 3])]);
		return program && places ? readPiece(key, program, places) : null;
	});
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

const blockOf = (p, i) => {
	const k = p.request[i];
	return { slot: p.slot[i], born: p.first + i, bornUs: p.us[i], bytes: k[0], stack: k[1], stream: k[2], pool: k[3], state: p.granted[i] || p.addr[i] ? LIVE : DROPPED, addr: p.addr[i], granted: p.granted[i] };
};

/* Blocks outside of ranges (no segments) get ranges; neighbours become one. */
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

/* The live blocks after `event`: the state before the piece and each slot's last event. */
function liveAfter(key, p, event)
{
	const born = new Map(), state = new Map(), out = [];
	for (let i = 0; p && i < p.n && p.first + i <= event; i++) {
		const what = p.op[i] & 7;
		if (what === EV.ALLOC) {
			born.set(p.slot[i], i);
			state.set(p.slot[i], LIVE);
		} else if (what < EV.TRIM) {
			state.set(p.slot[i], what === EV.FREE_REQUESTED ? WAITING : 0);
		}
	}
	for (const b of key.blocks) {
		const now = born.has(b.slot) ? 0 : state.get(b.slot) ?? b.state;
		if (now && b.state !== DROPPED)
			out.push({ ...b, state: b.state === WAITING ? WAITING : now });
	}
	for (const [slot, i] of born)
		if (state.get(slot)) {
			const b = blockOf(p, i);
			if (b.state !== DROPPED)
				out.push({ ...b, state: state.get(slot) });
		}
	return out.sort((a, b) => a.addr - b.addr);
}

/* Blocks and ranges by address; exact: false if only the state before the piece is there. */
async function stateAt(lane, event)
{
	event = Math.max(0, Math.min(event, lane.events_count - 1));
	const k = pieceOf(lane, event), p = await piece(lane, k), key = await keys(lane, k), blocks = liveAfter(key, p, event);
	let ranges = key.ranges.map(r => ({ ...r }));
	for (const c of p ? p.changes : [])
		if (c.event <= event)
			ranges = changeRanges(ranges, c);
	ranges.sort((a, b) => a.start - b.start);
	return { event, exact: !!p, us: p ? p.us[event - p.first] : key.us, blocks, ranges: cover(ranges, blocks), largest: blocks.slice().sort((a, b) => b.granted - a.granted).slice(0, 25),
		 totals: p ? p.series.map(s => s[event - p.first]) : key.totals };
}

/* When a block is freed: { requested, completed } as [event, us], or none. Its piece is found by halving: once gone, it stays gone. */
async function endOf(lane, { slot, born }, event)
{
	let low = pieceOf(lane, event), high = lane.pieces.length / 4 - 1;
	while (low < high) {
		const at = Math.ceil((low + high) / 2), key = await keys(lane, at);
		if (key.blocks.some(b => b.slot === slot && b.born === born))
			low = at;
		else
			high = at - 1;
	}
	const out = {};
	for (let k = pieceOf(lane, event); k <= low; k = k < low ? low : low + 1) {
		const p = await piece(lane, k);
		for (let i = p ? Math.max(0, born + 1 - p.first) : 0; p && i < p.n; i++) {
			const what = p.op[i] & 7;
			if (p.slot[i] !== slot || what === EV.ALLOC || what >= EV.TRIM)
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

async function holders(lane)
{
	const { stackList } = await names(lane);
	return b => stackList[b.stack]?.length ? b.stack : -b.bytes;
}
async function weightsAt(lane, event)
{
	const holder = await holders(lane), out = new Map();
	for (const b of (await stateAt(lane, event)).blocks)
		out.set(holder(b), (out.get(holder(b)) || 0) + b.granted);
	return out;
}

/* The average over events [from, to): bytes x time; over more pieces than SAMPLES, of the states at their beginnings. */
async function weightsOver(lane, from, to, turn)
{
	const holder = await holders(lane), out = new Map(), timed = lane.duration_us > 0, a = pieceOf(lane, from), b = pieceOf(lane, Math.max(from, to - 1));
	const add = (stack, v) => v && out.set(stack, (out.get(stack) || 0) + v), still = () => turn === undefined || turn === flameTurn;
	if (b - a > SAMPLES) {
		for (let i = 0; i < SAMPLES && still(); i++)
			for (const block of (await keys(lane, a + Math.floor((b - a) * i / SAMPLES))).blocks)
				add(holder(block), block.granted / SAMPLES);
		return Object.assign(out, { sampled: SAMPLES });
	}
	const live = new Map();
	let begin = null, now = 0;
	for (let k = a; k <= b && still(); k++) {
		const p = await piece(lane, k);
		if (!p)
			return weightsAt(lane, from);
		if (k === a)
			for (const block of p.key.blocks)
				live.set(block.slot, { ...block, since: -Infinity });
		for (let i = 0; i < p.n && p.first + i < to; i++) {
			const what = p.op[i] & 7;
			if (what >= EV.TRIM)
				continue;
			now = timed ? p.us[i] : p.first + i;
			if (begin === null && p.first + i >= from)
				begin = now;
			if (what === EV.ALLOC) {
				live.set(p.slot[i], { ...blockOf(p, i), since: now });
			} else if (what !== EV.FREE_REQUESTED && live.has(p.slot[i])) {
				const block = live.get(p.slot[i]);
				if (begin !== null)
					add(holder(block), block.granted * (now - Math.max(begin, block.since)));
				live.delete(p.slot[i]);
			}
		}
	}
	begin ??= now;
	for (const block of live.values())
		add(holder(block), block.granted * (now - Math.max(begin, block.since)));
	if (now === begin)
		return weightsAt(lane, from);
	for (const [stack, v] of out)
		out.set(stack, v / (now - begin));
	return out;
}
/* Bytes by stack at a moment, or on average over [from, to); a later turn ends an earlier one. */
const weights = (lane, at, span, turn) => span ? weightsOver(lane, span[0], span[1], turn) : weightsAt(lane, at);
