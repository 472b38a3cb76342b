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

const MARKS = ['step', 'refused request', 'empty_cache', 'returned to serve a request'];
const said = make('p', { class: 'said', role: 'status', 'aria-live': 'polite' });
const detail = make('div', { class: 'detail', role: 'status', 'aria-live': 'polite' });
const table = make('table'), frames = make('table');
const tables = make('details', { ontoggle: () => showBlocks() }, make('summary', { text: 'the same as tables' }), make('div', { class: 'scroll' }, table), make('div', { class: 'scroll' }, frames));
const bands = make('div', { class: 'bands', role: 'listbox', 'aria-label': 'devices and policies, the highest reserved first' });
const notes = make('ul', { class: 'notes' });
const search = make('input', { type: 'search', placeholder: 'function, file or module', 'aria-label': 'search frames', oninput: () => { ui.query = search.value; redraw(); } });
const timeline = panel('Memory over time', 260, 'wheel or + and -: zoom; drag: select a span; Shift and drag, or arrows: move; click: hold the cursor (again: release); double click: zoom to the selection; 0: the whole run; p, r: most live, most reserved; n, b: next and previous mark; [ and ]: single events',
	choice('x', [['events', 'events'], ['time', 'time']], () => ui.axis, v => { const a = eventAt(ui.x0), b = eventAt(ui.x1); ui.axis = v; ui.x0 = a ? xOf(a) : 0; ui.x1 = b >= lane.events_count ? whole() : xOf(b); clamp(); }),
	button('+', () => zoom(0.5), 'zoom in'), button('−', () => zoom(2), 'zoom out'), button('whole run', () => { ui.x0 = 0; ui.x1 = whole(); redraw(); }),
	button('most live', () => goTo(lane.peak_event)), button('most reserved', () => goTo(lane.peak_reserved_event)),
	choice('marks', [['', 'all'], ...MARKS.map((m, i) => [String(i), m.split(' to ')[0]]), ['notes', 'notes']], () => ui.marks, v => { ui.marks = v; }),
	button('‹', () => nextMark(-1), 'previous mark'), button('›', () => nextMark(1), 'next mark'));
const map = panel('Address map', 300, 'hover or tap a block; wheel or + and -: larger and smaller; arrows up and down: move',
	choice('colour', Object.keys(COLOURS).map(c => [c, c]), () => ui.colour, v => { ui.colour = v; }));
const flame = panel('Who holds it', 300, 'hover or tap a frame; click: only what it holds (again: all)',
	choice('by', [['line', 'Python line'], ['module', 'module']], () => ui.by, v => { ui.by = v; flameTop = null; }), search,
	button('mark this moment', () => { ui.mark = ui.at; ui.other = 'mark'; redraw(); }, 'compare with this moment'),
	choice('compared with', [['', 'nothing'], ['mark', 'the marked moment'], ...head.lanes.map((l, i) => ['lane' + i, 'lane ' + (i + 1)])], () => ui.other, v => { ui.other = v; }));
const colours = make('p', { class: 'legend colours' });
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

