/* ---- pens ---- */

function colourOf(name)
{
	return getComputedStyle(root).getPropertyValue('--' + name).trim() || '#888';
}

class CanvasPen {
	constructor(canvas)
	{
		const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
		this.width = Math.max(1, Math.round(box.width));
		this.height = Math.max(1, Math.round(box.height));
		if (canvas.width !== Math.round(this.width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
			canvas.width = Math.round(this.width * ratio);
			canvas.height = Math.round(this.height * ratio);
		}
		this.c = canvas.getContext('2d');
		this.c.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.c.clearRect(0, 0, this.width, this.height);
		this.c.font = '12px system-ui, sans-serif';
	}
	rect(x, y, w, h, fill, alpha = 1)
	{
		this.c.globalAlpha = alpha;
		this.c.fillStyle = fill;
		this.c.fillRect(x, y, w, h);
		this.c.globalAlpha = 1;
	}
	frame(x, y, w, h, stroke, thick = 1)
	{
		this.c.strokeStyle = stroke;
		this.c.lineWidth = thick;
		this.c.strokeRect(x, y, w, h);
	}
	area(xs, ys, floor, fill, alpha)
	{
		this.c.globalAlpha = alpha;
		this.c.fillStyle = fill;
		this.c.beginPath();
		this.c.moveTo(xs[0], floor);
		for (let i = 0; i < ys.length; i++) {
			this.c.lineTo(xs[i], ys[i]);
			this.c.lineTo(xs[i + 1], ys[i]);
		}
		this.c.lineTo(xs[ys.length], floor);
		this.c.fill();
		this.c.globalAlpha = 1;
	}
	outline(xs, ys, stroke)
	{
		this.c.strokeStyle = stroke;
		this.c.lineWidth = 1.5;
		this.c.beginPath();
		for (let i = 0; i < ys.length; i++) {
			this.c.lineTo(xs[i], ys[i]);
			if (ys[i] !== ys[i + 1])
				this.c.lineTo(xs[i + 1], ys[i]);
		}
		this.c.stroke();
	}
	line(x0, y0, x1, y1, stroke, dash = [], thick = 1)
	{
		this.c.strokeStyle = stroke;
		this.c.lineWidth = thick;
		this.c.setLineDash(dash);
		this.c.beginPath();
		this.c.moveTo(x0, y0);
		this.c.lineTo(x1, y1);
		this.c.stroke();
		this.c.setLineDash([]);
	}
	text(x, y, text, fill, anchor = 'start', room = Infinity)
	{
		this.c.fillStyle = fill;
		this.c.textAlign = anchor;
		if (this.c.measureText(text).width > room)
			text = text.slice(0, Math.max(0, Math.floor(room / 7) - 1)) + '…';
		if (text.length > 1 || room === Infinity)
			this.c.fillText(text, x, y);
	}
}

class SvgPen {
	constructor(width, height)
	{
		this.width = width;
		this.height = height;
		this.out = [];
	}
	add(tag, fields, text)
	{
		const safe = v => String(v).replace(/[&<>"]/g, c => '&#' + c.charCodeAt(0) + ';').replace(/[\0-\x08\x0b-\x1f]/g, '?');
		this.out.push('<' + tag + Object.entries(fields).map(([k, v]) => ' ' + k + '="' + safe(typeof v === 'number' ? +v.toFixed(2) : v) + '"').join('') +
			(text === undefined ? '/>' : '>' + safe(text) + '</' + tag + '>'));
	}
	rect(x, y, width, height, fill, alpha = 1) { this.add('rect', { x, y, width, height, fill, 'fill-opacity': alpha }); }
	frame(x, y, width, height, stroke, thick = 1) { this.add('rect', { x, y, width, height, stroke, fill: 'none', 'stroke-width': thick }); }
	path(xs, ys)
	{
		let d = '';
		for (let i = 0; i < ys.length; i++)
			if (i === ys.length - 1 || ys[i] !== ys[i + 1] || ys[i] !== ys[i - 1])
				d += 'L' + xs[i].toFixed(1) + ' ' + ys[i].toFixed(1) + 'H' + xs[i + 1].toFixed(1);
		return d;
	}
	area(xs, ys, floor, fill, alpha) { this.add('path', { d: 'M' + xs[0].toFixed(1) + ' ' + floor + this.path(xs, ys) + 'V' + floor + 'Z', fill, 'fill-opacity': alpha }); }
	outline(xs, ys, stroke) { this.add('path', { d: 'M' + this.path(xs, ys).slice(1), stroke, fill: 'none', 'stroke-width': 1.5 }); }
	line(x1, y1, x2, y2, stroke, dash = [], thick = 1) { this.add('line', { x1, y1, x2, y2, stroke, 'stroke-dasharray': dash.join(' '), 'stroke-width': thick }); }
	text(x, y, text, fill, anchor = 'start', room = Infinity)
	{
		const most = Math.floor(room / 6.5);
		if (most > 1)
			this.add('text', { x, y, fill, 'text-anchor': anchor === 'center' ? 'middle' : anchor === 'right' ? 'end' : 'start' }, text.length > most ? text.slice(0, most - 1) + '…' : text);
	}
	get svg()
	{
		return '<svg xmlns="http://www.w3.org/2000/svg" width="' + this.width + '" height="' + this.height + '" viewBox="0 0 ' + this.width + ' ' + this.height +
			'" style="font:12px system-ui,sans-serif"><rect width="100%" height="100%" fill="' + colourOf('card') + '"/>' + this.out.join('\n') + '</svg>\n';
	}
}

/* Okabe and Ito's colours, told apart by the colour-blind; lightness makes three of each. */
const HUES = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b5a800', '#7a7a7a'];
function mixed(hex, other, part)
{
	const n = [1, 3, 5].map(i => Math.round(parseInt(hex.slice(i, i + 2), 16) * (1 - part) + parseInt(other.slice(i, i + 2), 16) * part));
	return '#' + n.map(v => v.toString(16).padStart(2, '0')).join('');
}
const SHADES = [...HUES, ...HUES.map(h => mixed(h, '#ffffff', 0.4)), ...HUES.map(h => mixed(h, '#000000', 0.35))];
/* cividis: dark to light, the same for the colour-blind */
const SCALE = ['#00224e', '#2c3e70', '#575d6d', '#7d7c78', '#a59c74', '#d2c060', '#fee838'];
function onScale(part)
{
	const x = Math.max(0, Math.min(0.9999, part)) * (SCALE.length - 1);
	return mixed(SCALE[Math.floor(x)], SCALE[Math.floor(x) + 1], x % 1);
}
function hash(text)
{
	let h = 2166136261;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return h >>> 0;
}
const SCALED = { size: ['512 B', '4 GiB'], step: ['allocated in the first step', 'in the last'], age: ['new', 'as old as the run'] };
const stepOf = (of, event) => bisect(of.steps.length, i => of.steps[i] >= event);
const COLOURS = {
	'call site': b => SHADES[hash(siteName(files[lane.file], b.stack)) % SHADES.length],
	size: b => onScale(Math.log2(b.granted / 512 + 1) / 23),
	step: (b, s) => onScale((stepOf(lane, b.born) + 1) / (stepOf(lane, s.event) + 1)),
	age: (b, s) => onScale(Math.log2(1 + (lane.duration_us ? s.us - b.bornUs : s.event - b.born)) / Math.log2(2 + (lane.duration_us || lane.events_count))),
	stream: b => SHADES[b.stream % SHADES.length],
	pool: b => SHADES[b.pool % SHADES.length],
};

