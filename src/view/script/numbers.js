/* ---- numbers as people read them ---- */

function size(bytes)
{
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0, v = Math.abs(bytes);
	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	return (bytes < 0 ? '-' : '') + (i ? v.toPrecision(v >= 1000 ? 4 : 3) : Math.round(v)) + ' ' + units[i];
}
const inGroups = new Intl.NumberFormat('en', { maximumFractionDigits: 0 }), grouped = n => inGroups.format(n);
function duration(us)
{
	return us < 1e3 ? us.toFixed(0) + ' us' : us < 1e6 ? (us / 1e3).toPrecision(3) + ' ms' :
		us < 6e7 ? (us / 1e6).toPrecision(4) + ' s' : Math.floor(us / 6e7) + ' min ' + (us % 6e7 / 1e6).toFixed(1) + ' s';
}
/* First i in [0, n) for which is(i), else n. */
function bisect(n, is)
{
	let low = 0, high = n;
	while (low < high) {
		const at = (low + high) >> 1;
		if (is(at))
			high = at;
		else
			low = at + 1;
	}
	return low;
}
