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

let flameTop = null, flameFor = '', flameBoxes = [], flameRoot = null, flameSay = '', flameTurn = 0;

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

