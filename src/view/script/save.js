/* ---- pictures and rows ---- */

function download(name, type, text)
{
	const a = make('a', { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
/* as frag_text_add_csv: marked where a spreadsheet would take it for a formula, and quoted */
const csvCell = v => {
	const text = (/^[=+@\t\r-]/.test(v) && isNaN(v) ? "'" : '') + v;
	return /[",\n\r]|^ /.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
};
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

