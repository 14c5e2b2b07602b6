"""The style sheet of the page, which loads nothing external."""

__all__ = ["STYLE"]

STYLE = """
:root{--ink:#1d2733;--dim:#5a6878;--line:#dfe5ec;--soft:#f5f7fa;--accent:#0072b2;--warm:#d55e00}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;color:var(--ink);background:#fff;font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",
 Arial,"Noto Sans",sans-serif;overflow-wrap:anywhere}
main,header .in,nav .in,footer .in{max-width:960px;margin:0 auto;padding:0 20px}
header{background:linear-gradient(135deg,#0b3a5c,#0072b2);color:#fff;padding:40px 0 32px}
header h1{font-size:clamp(1.6rem,5vw,2.4rem);line-height:1.2;margin:0 0 6px;font-weight:700;letter-spacing:-.01em}
header p{margin:0;color:#d9ebf7;max-width:46em}
nav{position:sticky;top:0;background:#fffffff2;border-bottom:1px solid var(--line);z-index:2}
nav .in{display:flex;gap:2px 18px;overflow-x:auto;padding-top:10px;padding-bottom:10px}
nav a{color:var(--dim);text-decoration:none;white-space:nowrap;font-size:15px}
nav a:hover,nav a:focus{color:var(--accent);text-decoration:underline}
section{margin:44px 0;scroll-margin-top:56px}
h2{font-size:1.5rem;line-height:1.25;margin:0 0 12px;letter-spacing:-.01em}
h3{font-size:1.1rem;margin:28px 0 8px}
p{margin:0 0 14px;max-width:46em}
.lead{font-size:1.12rem}
.note{color:var(--dim)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:28px 0 0;padding:0;
 list-style:none;max-width:none}
.cards li{background:var(--soft);border:1px solid var(--line);border-radius:12px;padding:14px 16px}
.cards b{display:block;font-size:1.45rem;line-height:1.2}
.cards span{color:var(--dim);font-size:15px}
.scroll{overflow-x:auto;-webkit-overflow-scrolling:touch;max-width:100%}
.scroll:focus-visible,summary:focus-visible,a:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
figure{margin:20px 0 26px;padding:16px;border:1px solid var(--line);border-radius:12px;background:#fff}
figcaption{color:var(--dim);font-size:15px;margin-top:8px;max-width:48em}
svg{display:block;width:100%;height:auto;overflow:visible;margin:0 auto;font-family:inherit;font-size:14px}
svg text{fill:var(--ink)}
svg .dim{fill:var(--dim);font-size:13px}
svg.chart{font-size:15px}
svg.chart .dim{font-size:14px}
svg .strong{font-weight:650}
table{border-collapse:collapse;width:100%;font-size:15px;margin:0 0 18px;overflow-wrap:normal}
.cap{color:var(--dim);font-size:15px;margin:18px 0 6px;max-width:none}
th,td{padding:8px 12px 8px 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--ink);font-weight:600;white-space:nowrap}
tbody th{font-weight:500}
.k{white-space:nowrap}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-left:12px}
tr.best th,tr.best td{background:#eaf4fb;font-weight:650}
.wide{min-width:15em}
.dot{display:inline-block;width:12px;height:12px;border-radius:3px;margin:0 6px 0 -18px;vertical-align:-1px}
.legend{margin:0 0 8px;font-size:15px;max-width:none}
.legend span{display:inline-block;margin:0 14px 0 0;padding-left:18px}
.tag{display:inline-block;border-radius:20px;padding:0 10px;font-size:14px;background:var(--soft);white-space:nowrap;
 border:1px solid var(--line)}
.tag.out{background:#fff3e6;border-color:#f3cfa5}
pre,code{font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
pre{background:var(--soft);border:1px solid var(--line);border-radius:10px;padding:14px;overflow-x:auto;margin:8px 0}
details{margin:0 0 18px}
summary{cursor:pointer;color:var(--accent);font-weight:550}
ul{padding-left:1.2em;max-width:46em}
footer{border-top:1px solid var(--line);color:var(--dim);padding:20px 0 40px;font-size:15px}
@media(max-width:520px){main,header .in,nav .in,footer .in{padding-left:16px;padding-right:16px}figure{padding:10px}
 section{margin:34px 0}svg.chart text{font-size:18px}svg.chart .dim{font-size:17px}.wide{min-width:11em}}
@media print{nav{display:none}header{background:none;color:inherit;padding:0}header p{color:inherit}
 figure,tr{break-inside:avoid}}
"""
