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
	fillColours();
	if (!state.exact)
		pen.text(6, 14, 'at event ' + grouped(state.event) + ': only the state before its part is in this file', colourOf('fg'));
}

/* What the colours say: the values that hold most, or the ends of a scale. */
function fillColours()
{
	const scale = SCALED[ui.colour], sums = new Map();
	if (scale) {
		const bar = make('span', { class: 'scale' });
		bar.style.background = 'linear-gradient(90deg,' + SCALE + ')';
		colours.replaceChildren(scale[0] + ' ', bar, ' ' + scale[1]);
		return;
	}
	for (const b of state.blocks) {
		const name = ui.colour === 'call site' ? siteName(files[lane.file], b.stack) : ui.colour + ' ' + b[ui.colour], sum = sums.get(name) || { bytes: 0, colour: COLOURS[ui.colour](b, state) };
		sum.bytes += b.granted;
		sums.set(name, sum);
	}
	colours.replaceChildren(...[...sums].sort((a, b) => b[1].bytes - a[1].bytes).slice(0, 6).map(([name, sum]) => {
		const entry = make('span', { text: name + ': ' + size(sum.bytes) });
		entry.style.setProperty('--k', sum.colour);
		return entry;
	}));
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
	if (b !== chosen)
		return;
	const when = e => 'event ' + grouped(e[0]) + ', ' + duration(e[1]);
	freed.textContent = end.requested && end.completed ? when(end.requested) + '; then another stream, which the recording does not name, keeps it waiting for ' + duration(end.completed[1] - end.requested[1]) + ', until ' + when(end.completed) :
		end.completed ? when(end.completed) : end.requested ? when(end.requested) + '; another stream still uses it at the end' : 'not in this recording';
	detail.dataset.block = b.born;
}

