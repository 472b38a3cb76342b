/* ---- lanes: the pyramid, marks, losses ---- */

const head = JSON.parse(new TextDecoder().decode(await blob(root.dataset.head))), files = head.files;

const trouble = error => { said.textContent = error.message; };

function texts(bytes)
{
	const names = new TextDecoder().decode(columns(bytes)[0].bytes).split('\0');
	names.pop();
	return names;
}

/* Extremes of the buckets. */
function buckets(count, rows)
{
	const high = SERIES.map(() => new Float64Array(count)), low = SERIES.map(() => new Float64Array(count));
	for (let s = 0; s < 4; s++)
		for (let i = 0, last = 0; i < count; i++) {
			high[s][i] = last += rows[2 * s].step();
			low[s][i] = last - rows[2 * s + 1].u();
		}
	return { high, low };
}

async function openLane(lane, number)
{
	const rows = columns(await blob(lane.pyramid));
	lane.number = number;
	lane.name = lane.trace + ', ' + lane.policy;
	lane.times = [];
	while (rows[8].more)
		lane.times.push(rows[8].u());
	lane.buckets = buckets(lane.times.length, rows);
	const losses = columns(await blob(lane.losses))[0], marks = columns(await blob(lane.marks))[0];
	lane.losses = [];
	for (let event = 0; losses.more;)
		lane.losses.push([event += losses.u(), losses.u(), losses.u()]);
	lane.marks = [];
	for (let event = 0, us = 0; marks.more;) {
		const what = marks.u();
		lane.marks.push({ what, event: event += marks.u(), us: us += marks.u(), value: marks.u() });
	}
	const steps = lane.marks.filter(m => m.what === 0).map(m => m.event);
	lane.steps = steps.length < 4 ? [] : steps; // none for diagnose either
	lane.cache = new Map();
}

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

/* What a timeline draws of pieces (the oldest forgotten); undefined: being read; null: not here. */
const PIECES = 24;
function pieceNow(lane, k)
{
	const found = lane.cache.get(k) || { };
	if (!lane.cache.delete(k))
		piece(lane, k).then(p => { found.value = p && { first: p.first, n: p.n, us: p.us, series: p.series }; redraw(); }, trouble);
	lane.cache.set(k, found);
	if (lane.cache.size > PIECES)
		lane.cache.delete(lane.cache.keys().next().value);
	return found.value;
}

/* ---- events and pixels ---- */

const ui = { lane: 0, x0: 0, x1: 1, axis: 'events', at: 0, pinned: false, colour: 'call site', by: 'line', query: '', sel: null, mark: null, other: '', marks: '', mapScale: 1, mapTop: 0 };
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

/* Most and least of each series over single events [from, to); of none: the value before. */
function spanOf(from, to, take)
{
	if (to <= from) {
		from = Math.min(from, lane.events_count) - 1;
		to = from + 1;
	}
	for (let s = 0; s < 4; s++) {
		let h = 0, l = from < 0 ? 0 : Infinity;
		for (let e = Math.max(0, from); e < to;) {
			const p = pieceNow(lane, pieceOf(lane, e)), series = p.series[s], end = Math.min(to, p.first + p.n) - p.first;
			for (let i = e - p.first; i < end; i++) {
				const v = series[i];
				if (v > h)
					h = v;
				if (v < l)
					l = v;
			}
			e = p.first + end;
		}
		take(s, h, l);
	}
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
	const coarse = (eventAt(x1) - eventAt(x0)) / width >= lane.bucket_events;
	let exact = true;
	for (let k = pieceOf(lane, eventAt(x0)); !coarse && k * lane.piece_events < Math.min(eventAt(x1) + 1, lane.events_count); k++)
		exact = !!pieceNow(lane, k) && exact;
	const single = exact && !coarse, unit = single ? 1 : lane.bucket_events, last = lane.times.length;
	for (let i = 0; i <= width; i++)
		edges.push(Math[single ? 'floor' : 'round'](eventAt(x0 + (x1 - x0) * i / width) / unit));
	for (let i = 0; i < width; i++) {
		const a = Math.min(edges[i], last - 1), b = Math.min(Math.max(edges[i + 1], a + 1), last);
		for (let s = 0; s < 4 && !single; s++) {
			high[s][i] = lane.buckets.high[s].subarray(a, b).reduce((m, v) => Math.max(m, v), 0);
			low[s][i] = lane.buckets.low[s].subarray(a, b).reduce((m, v) => Math.min(m, v), Infinity);
		}
		if (single)
			spanOf(edges[i], edges[i + 1], (s, h, l) => { high[s][i] = h; low[s][i] = l; });
	}
	lane = keep;
	return { high, low, edges: edges.map(e => Math.min(e * unit, of.events_count)), exact };
}

