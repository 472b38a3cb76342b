/* ---- begin ---- */

await Promise.all(head.lanes.map(openLane));
timeline.canvas.setAttribute('aria-label', 'requested, allocated and reserved memory over the run; the line above says what is at the cursor');
map.canvas.setAttribute('aria-label', 'segments, blocks and holes by address at the cursor; the table below lists the largest');
flame.canvas.setAttribute('aria-label', 'call stacks by what they hold; the table below lists the largest');
const legend = make('p', { class: 'legend' }, ...[['requested', 'requested'], ['rounding', 'rounding'], ['waiting', 'waiting for a stream'], ['kept', 'free, non-releasable'], ['releasable', 'free, releasable']].map(([k, text]) => make('span', { class: 'k-' + k, text })),
	...[['refused', 'refused request'], ['trim', 'empty_cache'], ['returned', 'returned to serve a request']].map(([k, text]) => make('span', { class: 'k-' + k, text })));
for (const n of head.notes)
	notes.append(make('li', {}, button('event ' + grouped(n.event), () => { choose(n.lane); goTo(n.event); }), ' ' + n.text));
const single = head.lanes.flatMap(l => l.pieces.filter((b, i) => b && i % 2)), inside = single.filter(b => document.getElementById('b' + b)).length;
if (!root.dataset.served && inside < single.length)
	notes.append(make('li', { text: Math.floor(100 * inside / single.length) + ' % of the single events are in this file, those around the peaks of live and of reserved memory; of the rest, the states between parts and the extremes of every part. cufrag view serves all of them.' }));
legend.append(make('span', { class: 'k-other', text: 'reserved of the lane compared with' }));
if (head.lanes.some(l => l.marks_left_out))
	legend.append('of each kind of mark, the first 50,000 are shown');
timeline.box.querySelector('.bar').after(legend);
map.canvas.after(colours);
root.append(make('h2', { text: 'Interactive view' }), bands, said, timeline.box, notes, make('div', { class: 'two' }, map.box, make('section', { class: 'panel' }, make('h3', { text: 'At the pointer' }), detail)), flame.box,
	tables);
root.hidden = false;
fillBands();
readLink();
drawBands();
addEventListener('resize', () => { placeFlame(); drawBands(); redraw(); });
addEventListener('hashchange', () => { if (location.hash && location.hash !== link()) { readLink(); redraw(); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawBands(); redraw(); });
redraw();
/* for tests and for the console */
root.view = { head, ui, choose, goTo, zoom, redraw, columnsOf, stateAt, endOf, hit, showBlock, rangeOf: withRange, towers: () => flameBoxes, pictureOf, rowsOf: i => ROWS[i](), csvOf: i => csvOf(ROWS[i]()), get state() { return state; }, get seen() { return seen; }, get flame() { return flameTop; }, draw, weights };
root.dataset.ready = '1';
})().catch(error => {
	const root = document.getElementById('live');
	root.hidden = false;
	root.textContent = 'This page could not be opened: ' + error.message;
	throw error;
});
