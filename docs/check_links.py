"""Whether every link within the built pages leads somewhere: `python docs/check_links.py FOLDER`.

Links and pictures that are relative must name a file of the folder and, after #, an id in it. Links to other sites
are counted, not followed: `sphinx-build -b linkcheck docs FOLDER` follows them, where there is a network. Nothing may
be loaded from other sites: scripts, pictures and style sheets lie in the folder, so pages read well without a network.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

APPLICATIONS = {"history"}  # asv's pages find their way by scripts: only that they are there is checked


class Page(HTMLParser):
    """The links that a page holds, those of them that it loads, and the ids that it offers."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Keep what matters of one tag."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
                if name == "src" or tag == "link":
                    self.loaded.add(value)
            elif name in ("id", "name") and value:
                self.ids.add(value)


def broken(folder):
    """(page, link) of all that lead nowhere or are loaded from elsewhere, and the addresses of other sites."""
    pages = {
        path.resolve(): Page(path)
        for path in sorted(folder.rglob("*.html"))
        if path.relative_to(folder).parts[0] not in APPLICATIONS
    }
    bad, outside = [], set()
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside.add(link)
                if link in page.loaded and parts.scheme != "data":
                    bad.append((path.relative_to(folder.resolve()), link))
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].ids if target in pages else {"", parts.fragment}
            if not target.exists() or unquote(parts.fragment) not in anchors:
                bad.append((path.relative_to(folder.resolve()), link))
    return bad, sorted(outside)


if __name__ == "__main__":
    bad, outside = broken(Path(sys.argv[1]))
    for page, link in bad:
        print(f"{page}: {link} leads nowhere, or is loaded from another site", file=sys.stderr)
    print(f"{len(outside)} links to other sites, {len(bad)} broken links within")
    sys.exit(bool(bad))
