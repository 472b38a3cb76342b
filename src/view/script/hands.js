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
	const marks = ui.marks === 'notes' ? [] : ui.marks ? lane.marks.filter(m => m.what === +ui.marks) : lane.marks, found = ui.marks && ui.marks !== 'notes' ? [] : head.notes.filter(n => n.lane === lane.number);
	const all = [...marks, ...found].map(m => m.event).sort((a, b) => a - b);
	const next = direction > 0 ? all.find(e => e > ui.at) : all.reverse().find(e => e < ui.at);
	if (next !== undefined)
		goTo(next);
	else
		said.textContent = 'no ' + (direction > 0 ? 'later' : 'earlier') + ' mark';
}
const KEYS = {
	'+': () => zoom(0.5, xOf(ui.at)), '=': () => zoom(0.5, xOf(ui.at)), '-': () => zoom(2, xOf(ui.at)), ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1),
	0: () => { ui.x0 = 0; ui.x1 = whole(); }, Home: () => goTo(0), End: () => goTo(lane.events_count - 1), p: () => goTo(lane.peak_event), r: () => goTo(lane.peak_reserved_event),
	'[': () => goTo(ui.at - 1), ']': () => goTo(ui.at + 1), PageUp: () => goTo(ui.at - Math.ceil((eventAt(ui.x1) - eventAt(ui.x0)) / 10)), PageDown: () => goTo(ui.at + Math.ceil((eventAt(ui.x1) - eventAt(ui.x0)) / 10)),
	n: () => nextMark(1), b: () => nextMark(-1), Escape: () => { ui.sel = null; ui.pinned = false; }, s: () => { ui.sel = ui.sel ? [Math.min(ui.sel[0], ui.at), Math.max(ui.sel[0], ui.at)] : [ui.at, ui.at + 1]; },
	m: () => { ui.mark = ui.at; ui.other = 'mark'; },
};
/* What keys do on a canvas, and elsewhere, but where one types or chooses: there some scroll. */
function onKeys(canvas, keys)
{
	canvas.addEventListener('keydown', e => {
		if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key] ||
			(canvas === document && (/canvas|input|select/i.test(e.target.nodeName) || /^(Home|End|Page)/.test(e.key))))
			return;
		e.preventDefault();
		keys[e.key]();
		redraw();
	});
}
onKeys(timeline.canvas, KEYS);
onKeys(document, KEYS);

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
onKeys(map.canvas, { '+': () => scaleMap(1.5), '-': () => scaleMap(1 / 1.5), ArrowDown: () => { ui.mapTop += 2; }, ArrowUp: () => { ui.mapTop -= 2; }, ArrowRight: () => nextBlock(1), ArrowLeft: () => nextBlock(-1) });

function nextBlock(direction)
{
	const at = state?.blocks.indexOf(chosen) ?? -1, block = state?.blocks[Math.max(0, Math.min(state.blocks.length - 1, at + direction))];
	if (block)
		showBlock(withRange(block));
	ui.pinned = true;
}

const frameAt = e => {
	const [x, y] = offset(e, flame.canvas);
	return flameBoxes.find(b => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + 18)?.node;
};
function showFrame(node)
{
	flamePick = node;
	detail.replaceChildren(make('p', { text: frameText(node) }));
}
function onlyFrame(node)
{
	flameRoot = node && node !== flameRoot && node !== flameTop ? node : null;
	redraw();
}
flame.canvas.addEventListener('pointermove', e => {
	const node = frameAt(e);
	if (node)
		showFrame(node);
});
flame.canvas.addEventListener('click', e => onlyFrame(frameAt(e)));
const walk = to => () => {
	const now = flamePick || flameTop;
	if (now)
		showFrame(to(now, now.parent ? kidsOf(now.parent) : [now]) || now);
};
onKeys(flame.canvas, { ArrowDown: walk(n => kidsOf(n)[0]), ArrowUp: walk(n => n.parent), ArrowRight: walk((n, all) => all[all.indexOf(n) + 1]), ArrowLeft: walk((n, all) => all[all.indexOf(n) - 1]), Enter: () => onlyFrame(flamePick || flameTop) });

