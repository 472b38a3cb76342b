/* SPDX-License-Identifier: Apache-2.0 */
/* Head, style and foot of our pages: light, dark and print from one set of variables. */
#include "answer.h"

static const char style[] =
	":root{color-scheme:light "
	"dark;--bg:#f6f7f8;--card:#fff;--fg:#1d2126;--muted:#59626d;--line:#d9dee3;--accent:#"
	"0072b2;--best:#e8f3fa;--shade:#0003;--ink:#222;--axis:#444;--grid:#ddd;--area:#b4bac0;--"
	"spare:#fbe3d3;--brown:#7a5230;--indigo:#3d348b}\n"
	"@media "
	"(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--fg:#e7eaed;--muted:#"
	"a2abb5;--line:#343b43;--accent:#6cc0f0;--best:#16303f;--shade:#fff4;--ink:#e2e5e8;--axis:#"
	"b4bac0;--grid:#343a40;--area:#69717a;--spare:#54392a;--brown:#c39a72;--indigo:#a49bf0}."
	"charts svg{color:#e2e5e8}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;background:var(--bg);color:var(--fg);font:1rem/1.55 "
	"system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}\n"
	"main{max-width:1180px;margin:0 auto;padding:24px 20px 56px}\n"
	"h1{font-size:1.75rem;line-height:1.2;margin:.1em 0 .3em;overflow-wrap:anywhere}\n"
	"h2{font-size:1.3rem;margin:2em 0 .5em;overflow-wrap:anywhere}\n"
	"h3{font-size:1.05rem;margin:0 0 .4em}\n"
	"p,li,dd{overflow-wrap:anywhere}p{margin:.5em 0}a{color:var(--accent)}\n"
	".kicker,.meta,figcaption,.files,.unit{color:var(--muted)}\n"
	".kicker{margin:0;font-size:.9rem}.meta,.files{font-size:.9rem}\n"
	".question{font-size:1.1rem}\n"
	".answer{font-size:1.12rem;background:var(--card);border:1px solid "
	"var(--line);border-left:5px solid var(--accent);border-radius:6px;padding:12px "
	"16px;margin:14px 0;overflow-wrap:anywhere}\n"
	".warn{border-left:5px solid #d55e00;padding:4px 12px}\n"
	"code{font:.92em/1.5 ui-monospace,\"DejaVu Sans Mono\",monospace;overflow-wrap:anywhere}\n"
	".facts{font-size:.9rem;margin:10px 0;gap:2px "
	"14px;color:var(--muted)}.todo{font-size:1.05rem;margin:14px 0}.todo "
	"code{background:var(--best);padding:3px 8px;border-radius:4px}\n"
	".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;"
	"margin:16px 0}\n"
	".tile{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:10px "
	"14px}\n"
	".tile b{display:block;font-size:1.3rem;overflow-wrap:anywhere}.tile "
	"span{color:var(--muted);font-size:.88rem;overflow-wrap:anywhere}\n"
	/* shadows at the edges where there is more to the side: they scroll away with the ends */
	".scroll{overflow-x:auto;background:linear-gradient(90deg,var(--card) 40%,transparent) 0 "
	"0/48px 100% no-repeat local,linear-gradient(270deg,var(--card) 40%,transparent) 100% "
	"0/48px 100% no-repeat local,linear-gradient(90deg,var(--shade),transparent) 0 0/18px 100% "
	"no-repeat scroll,linear-gradient(270deg,var(--shade),transparent) 100% 0/18px 100% "
	"no-repeat scroll,var(--card);border:1px solid var(--line);border-radius:6px}\n"
	"table{border-collapse:collapse;width:100%;font-size:.86rem;font-variant-numeric:tabular-"
	"nums}\n"
	"th,td{padding:6px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid "
	"var(--line)}\n"
	"td.l,th.l{text-align:left}td.l{white-space:normal;overflow-wrap:break-word;min-width:4em}"
	"td.long{min-width:9em}td.long:first-child{min-width:13em}\n"
	"th{font-weight:600;vertical-align:bottom;white-space:normal}.unit{display:block;font-"
	"weight:400}\n"
	"tr.best td{background:var(--best);font-weight:600}tbody tr:last-child "
	"td{border-bottom:0}\n"
	".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,500px),1fr));"
	"gap:18px;align-items:start}\n"
	"figure{margin:0;min-width:0;background:var(--card);border:1px solid "
	"var(--line);border-radius:6px;padding:14px;break-inside:avoid}\n"
	"figure svg{display:block;width:100%;height:auto;max-width:700px;margin:0 auto}\n"
	"figure+figure,.scroll+.charts,.scroll+.scroll,p+.charts{margin-top:18px}.charts "
	"figure{margin-top:0}\n"
	"figcaption{margin-top:8px;font-size:.95rem}.files{margin:6px 0 0}\n"
	"dl{display:grid;grid-template-columns:minmax(9em,max-content) 1fr;gap:6px 18px}\n"
	"dt{font-weight:600}dd{margin:0}\n"
	"@media (max-width:600px){main{padding:12px 8px 40px}dl{display:block}dd{margin:0 0 "
	".6em}h1{font-size:1.4rem}figure{padding:6px "
	"0;border-left:0;border-right:0;border-radius:0;margin:0 "
	"-8px}figure+figure{margin-top:14px}figcaption,figure h3,figure .files{padding:0 "
	"10px}td.long:first-child{min-width:11em}th,td{padding:5px 6px}}\n"
	"pre{background:var(--card);border:1px solid "
	"var(--line);border-radius:6px;padding:12px;overflow-x:auto;font:13.5px/1.5 "
	"ui-monospace,\"DejaVu Sans Mono\",monospace;white-space:pre-wrap;overflow-wrap:anywhere}\n"
	"footer{margin-top:3em;color:var(--muted);font-size:.9rem}\n"
	/* last, so that it wins */
	"@media "
	"print{:root{--bg:#fff;--card:#fff;--fg:#000;--muted:#444;--line:#bbb;--accent:#00598c;--"
	"best:#eef5fa;--ink:#222;--axis:#444;--grid:#ddd;--area:#b4bac0;--spare:#fbe3d3}html{font-"
	"size:13px}main{max-width:none;padding:0}.scroll{overflow:visible;border:0;background:none}"
	"table{font-size:6.6pt}th,td{padding:3px "
	"3px}th{white-space:normal}td.l,td.long,td.long:first-child{min-width:0}h2,h3{break-after:"
	"avoid}tr,figure,.answer,.tiles,.todo{break-inside:avoid}figure{border:0;padding:0;margin:"
	"12px 0}figure "
	"svg{max-height:9.4cm}.tiles{grid-template-columns:repeat(auto-fit,minmax(130px,1fr))}a{"
	"text-decoration:none}}\n"
	"@page{margin:15mm}\n";

void frag_page_begin(const char *title, const char *policy, struct frag_text *out)
{
	frag_text_add(out,
		      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
	if (policy) {
		frag_text_add(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"");
		frag_text_add_html(out, policy);
		frag_text_add(out, "\">\n");
	}
	frag_text_add(out, "<title>");
	frag_text_add_html(out, title);
	frag_text_addf(out, "</title>\n<meta name=\"generator\" content=\"cufrag ");
	frag_text_add_html(out, FRAG_VERSION);
	frag_text_add(out, "\">\n<style>\n");
	frag_text_add(out, style);
	frag_text_add(out, "</style>\n</head>\n<body>\n<main>\n");
}

void frag_page_end(struct frag_text *out)
{
	frag_text_add(out, "<footer>Made by cufrag ");
	frag_text_add_html(out, FRAG_VERSION);
	frag_text_add(out, ".</footer>\n</main>\n</body>\n</html>\n");
}
