/* ---- drawing all of it ---- */

let stateBusy = false, wantedBlock = null, /* that a link holds */ usual = !location.hash; /* the colours are not yet chosen */
/* One question at a time: the cursor moves faster than states are read. */
async function fillState(key)
{
	const of = lane;
	stateBusy = true;
	stateFor = key;
	try {
		await names(of);
		const next = await stateAt(of, ui.at);
		if (usual && files[of.file].stackList.length < 2)
			ui.colour = 'size';
		usual = false;
		if (of === lane)
			showState(next);
	} catch (error) {
		trouble(error);
	}
	stateBusy = false;
	redraw();
}
function showState(next)
{
	state = next;
	chosen = null;
	const [requested, allocated, active, reserved] = state.totals;
	said.textContent = 'event ' + grouped(state.event) + ' of ' + grouped(lane.events_count) + ', ' + duration(state.us) + (lane.steps.length ? ', step ' + (stepOf(lane, state.event) + 1) : '') +
		': reserved ' + size(reserved) + ', allocated ' + size(allocated) + ', requested ' + size(requested) + ', free ' + size(reserved - active) + '; ' + grouped(state.blocks.length) + ' blocks in ' + grouped(state.ranges.length) + ' segments' + (ui.pinned ? ' (held)' : '');
	const here = lane.marks.filter(m => m.event === state.event);
	if (here.length)
		said.textContent += '; here: ' + here.map(m => MARKS[m.what] + (m.what && m.value ? ' ' + size(m.value) : '')).join(', ');
	const linked = wantedBlock !== null && state.blocks.find(b => b.born === wantedBlock);
	wantedBlock = null;
	if (linked)
		showBlock(withRange(linked));
	if (tables.open)
		showBlocks();
}
const withRange = block => ({ block, range: state.ranges.find(r => r.start <= block.addr && block.addr < r.end) });
function showBlocks()
{
	fillTable(table, ['block', 'size', 'age', 'call site'], (state?.largest || []).map(b =>
		[button('0x' + b.addr.toString(16), () => showBlock(withRange(b))), size(b.granted), grouped(state.event - b.born) + ' events', siteName(files[lane.file], b.stack)]));
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
	if (flameTop && changed(flame, look, [flameTop, flameRoot, flamePick]))
		drawFlame(new CanvasPen(flame.canvas));
	flame.box.querySelector('.hint').textContent = (flameTop ? flameSay + (ui.query ? '; found: ' + size(matches(flameTop)) : '') + '. ' : '') + 'hover or tap a frame; click: only what it holds (again: all)';
	const key = lane.number + ':' + ui.at;
	if (key !== stateFor && !stateBusy)
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
	for (const [k, v, usual] of [['axis', ui.axis, 'events'], ['colour', ui.colour, 'call site'], ['by', ui.by, 'line'], ['q', ui.query, ''], ['less', ui.other, ''], ['mark', ui.mark ?? '', ''], ['sel', ui.sel ? ui.sel.map(Math.round).join('-') : '', ''], ['held', ui.pinned ? 1 : '', ''], ['marks', ui.marks, ''], ['map', ui.mapScale === 1 ? '' : ui.mapScale.toFixed(2) + '-' + ui.mapTop.toFixed(1), ''], ['block', chosen?.born ?? '', '']])
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
	ui.marks = one('marks', ['', 'notes', ...MARKS.keys()].map(String));
	wantedBlock = w.has('block') ? +w.get('block') : null;
	const x = pair('x'), sel = pair('sel'), scale = pair('map');
	[ui.mapScale, ui.mapTop] = scale?.length === 2 && scale.every(Number.isFinite) ? [Math.max(1, Math.min(4096, scale[0])), scale[1]] : [1, 0];
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
	const order = head.lanes.slice().sort((a, b) => b.peak_reserved_bytes - a.peak_reserved_bytes), most = Math.max(...order.map(l => l.replayed_peak_bytes));
	for (const l of order) {
		const canvas = make('canvas'), band = make('button', { type: 'button', role: 'option', 'data-lane': l.number, onclick: () => choose(l.number) },
			make('span', { class: 'name', text: l.number + 1 + '. ' + l.name }), make('span', { class: 'most', text: size(l.peak_reserved_bytes) + (l.replayed_peak_bytes === l.peak_reserved_bytes ? '' : ', simulated ' + size(l.replayed_peak_bytes)) + (l.refused_count ? ', ' + grouped(l.refused_count) + ' refused' : '') }), canvas);
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

