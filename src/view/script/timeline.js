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
	const lines = [...head.cards.filter(c => c.room_bytes !== lane.card_bytes).map(c => [c.room_bytes, c.name, [1, 4]]), [lane.card_bytes, 'card', [2, 3]], [lane.limit_bytes, 'limit', [6, 3]]]
		.filter(([bytes]) => bytes && bytes < 1.25 * top);
	top = 1.04 * Math.max(top, ...lines.map(l => l[0]));
	const y = v => floor - v / top * (floor - TOP), xs = Float64Array.from({ length: width + 1 }, (_, i) => LEFT + i);
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
		held[i] = seen.high[ACTIVE][i] + (seen.high[RESERVED][i] - seen.high[ACTIVE][i]) * (kept + releasable ? kept / (kept + releasable) : 0);
	}
	const layers = [[seen.high[RESERVED], 'releasable'], [held, 'kept'], [seen.high[ACTIVE], 'waiting'], [seen.high[ALLOCATED], 'rounding'], [seen.high[0], 'requested']];
	for (const [values, name] of layers)
		pen.area(xs, values.map(y), floor, colourOf('v-' + name), 1);
	pen.area(xs, seen.low[0].map(y), floor, colourOf('v-low'), 0.55);
	pen.outline(xs, seen.high[RESERVED].map(y), colourOf('v-edge'));
	drawOther(pen, width, xs, y);
	drawSizes(pen, lines, y, ink);
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
/* The lane that this one is compared with: the same requests, or else the same part of its run. */
function drawOther(pen, width, xs, y)
{
	const other = ui.other.startsWith('lane') && head.lanes[+ui.other.slice(4)];
	if (!other || other === lane)
		return;
	const scale = (ui.axis === 'time' ? other.duration_us / lane.duration_us : other.events_count / lane.events_count) || 1, same = other.program === lane.program ? 1 : scale;
	pen.outline(xs, columnsOf(other, ui.x0 * same, ui.x1 * same, width).high[RESERVED].map(v => Math.max(TOP, y(v))), colourOf('v-other'));
}
/* Limit, card and other cards around the peak: the higher first, no name over another's. */
function drawSizes(pen, lines, y, ink)
{
	let free = Infinity;
	for (const [bytes, name, dash] of lines.reverse().sort((a, b) => b[0] - a[0])) {
		pen.line(LEFT, y(bytes), pen.width - 6, y(bytes), colourOf('v-limit'), dash, 1.5);
		if (Math.abs(y(bytes) - free) < 13)
			continue;
		free = y(bytes);
		pen.text(pen.width - 10, free < TOP + 16 ? free + 12 : free - 4, name + ' ' + size(bytes), ink, 'right');
	}
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

