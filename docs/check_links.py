"""Check that every link within the built pages has a target: `python docs/check_links.py FOLDER`.

Relative links and images must name a file of the folder and, after #, an id in it. Links to other sites are counted but
not followed; `sphinx-build -b linkcheck docs FOLDER` follows them. Scripts, images and style sheets must not be loaded
from other sites, so that the pages work offline.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

APPLICATIONS = {"history"}  # asv's pages navigate by scripts: only their existence is checked


class Page(HTMLParser):
    """Collect the links of a page, the resources that it loads, and its ids."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Record the links and the id of a tag."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
                if name == "src" or tag == "link":
                    self.loaded.add(value)
            elif name in ("id", "name") and value:
                self.ids.add(value)


def broken(folder):
    """Return (page, link) of all links without a target or loaded from another site, and all external addresses."""
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
        print(f"{page}: {link} has no target, or is loaded from another site", file=sys.stderr)
    print(f"{len(outside)} links to other sites, {len(bad)} broken links within")
    sys.exit(bool(bad))
