/* ---- the flame graph ---- */

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

let flameTop = null, flameFor = '', flameBoxes = [], flameRoot = null, flamePick = null, flameSay = '', flameTurn = 0;

async function fillFlame(key)
{
	const turn = ++flameTurn, span = ui.sel?.map(Math.round);
	flameFor = key;
	const moment = of => weights(of, Math.min(ui.at, of.events_count - 1), span, turn);
	const sides = [];
	if (ui.other === 'mark' && ui.mark !== null)
		sides.push({ file: await names(lane), weights: await weights(lane, ui.mark, null, turn) });
	if (ui.other.startsWith('lane')) {
		const other = head.lanes[+ui.other.slice(4)];
		sides.push({ file: await names(other), weights: await moment(other) });
	}
	const held = await moment(lane);
	sides.push({ file: await names(lane), weights: held });
	if (turn !== flameTurn)
		return;
	flameSay = ui.sel ? 'average over the selection' + (held.sampled ? ', of ' + held.sampled + ' moments' : '') : 'after event ' + grouped(ui.at);
	if (sides.length > 1)
		flameSay += ', compared with ' + (ui.other === 'mark' ? 'event ' + grouped(ui.mark) : head.lanes[+ui.other.slice(4)].name) + ': red is more, blue less';
	flameTop = frameTree(sides);
	flameTop.differs = sides.length > 1;
	flameRoot = flamePick = null;
	flameTop.sides = [ui.other === 'mark' ? 'event ' + grouped(ui.mark) + ' (marked)' : flameTop.differs && head.lanes[+ui.other.slice(4)].name, ui.sel ? 'the selection' : 'event ' + grouped(ui.at)];
	const deep = node => 1 + Math.max(0, ...[...node.kids.values()].map(deep));
	flameTop.high = Math.max(4, Math.min(deep(flameTop), 60)) * HIGH + 4;
	placeFlame();
	redraw();
	showFrames();
}
/* Two moments or runs side by side, their difference below; on a narrow page in one column. */
const HIGH = 18, HEADING = 20;
function placeFlame()
{
	const places = flameTop?.differs ? flame.canvas.clientWidth < 700 ? 3 : 2 : 0;
	if (flameTop)
		flame.canvas.style.height = (places ? places * (flameTop.high + HEADING) : flameTop.high) + 'px';
}
const weightOf = node => flameTop.differs ? Math.max(node.value, node.base) : node.value;

function flameColour(node, side)
{
	if (side !== 'difference')
		return mixed(HUES[[1, 5, 6, 3][hash(moduleOf(node.name)) % 4]], '#ffffff', 0.25 + hash(node.name) % 5 * 0.06);
	const d = node.value - node.base, part = Math.min(1, Math.abs(d) / Math.max(node.value, node.base, 1));
	return mixed('#d9d9d9', d > 0 ? '#d73027' : '#2166ac', Math.sqrt(part));
}

function drawFlame(pen)
{
	const top = flameRoot || flameTop, wide = pen.width, half = wide < 700 ? wide : Math.floor(wide / 2) - 4, ink = colourOf('fg');
	flameBoxes = [];
	if (!top || !weightOf(top)) {
		pen.text(6, 16, flameTop ? 'nothing is held' : 'reading …', ink);
		return;
	}
	if (!flameTop.differs) {
		drawTower(pen, top, 0, wide, 0, 'value');
		return;
	}
	const next = flameTop.high + HEADING, stacked = half === wide;
	for (const [side, x, y, w, text] of [['base', 0, 0, half, flameTop.sides[0] + ', ' + size(top.base)], ['value', stacked ? 0 : wide - half, stacked ? next : 0, half, flameTop.sides[1] + ', ' + size(top.value)],
		['difference', 0, stacked ? 2 * next : next, wide, 'difference: red is more on the right, blue less, ' + (top.value > top.base ? '+' : '') + size(top.value - top.base)]]) {
		pen.text(x + 2, y + 14, text, ink, 'start', w);
		drawTower(pen, top, x, w, y + HEADING, side);
	}
}
const kidsOf = node => [...node.kids.values()].sort((a, b) => weightOf(b) - weightOf(a));
/* One graph: side: which bytes are its widths; both towers of a pair share scale and order. */
function drawTower(pen, top, left, width, above, side)
{
	const query = ui.query.toLowerCase(), weight = side === 'difference' ? weightOf : node => node[side], most = Math.max(top.value, flameTop.differs ? top.base : 0);
	const put = (node, x, w, depth) => {
		if (w < 0.7 || depth * HIGH > flameTop.high)
			return;
		const found = query && node.name.toLowerCase().includes(query), y = above + depth * HIGH;
		pen.rect(x, y, Math.max(w - 0.7, 0.5), HIGH - 1, found ? '#c51bd2' : node === flameTop ? colourOf('line') : flameColour(node, side));
		if (w > 24)
			pen.text(x + 4, y + 13, node === flameTop ? 'all: ' + size(side === 'base' ? node.base : node.value) : node.name, found ? '#fff' : node === flameTop ? colourOf('fg') : '#111', 'start', w - 8);
		if (node === flamePick)
			pen.frame(x, y, w, HIGH - 1, colourOf('fg'), 2);
		flameBoxes.push({ node, x, w, y });
		let at = x;
		const scale = w / Math.max(weight(node), [...node.kids.values()].reduce((sum, kid) => sum + weight(kid), 0), 1e-9);
		for (const kid of kidsOf(node)) {
			put(kid, at, weight(kid) * scale, depth + 1);
			at += weight(kid) * scale;
		}
	};
	put(top, left, side === 'difference' ? width : width * weight(top) / most, 0);
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

