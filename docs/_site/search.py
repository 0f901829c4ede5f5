"""What the site's search shows first: pages that say how to do something, then what lists names."""

_BOOSTS = {  # by the beginning of a page's path; the last that fits holds
    "howto/": 2,
    "howto/ndcg.md": 1,
    "howto/curves.md": 3,
    "howto/your-table.md": 3,
    "reference/metrics.md": 3,
    "data.md": 3,
    "commands.md": 0.5,
    "examples/": 0.5,
    "math/proofs.md": 0.5,
    "reference/index.md": 0.2,
    "policy.md": 0.2,
    "trust.md": 0.2,
    "changelog.md": 0.2,
}


def on_page_markdown(markdown, page, config, files):
    """Give the page its boost."""
    for beginning, boost in _BOOSTS.items():
        if page.file.src_uri.startswith(beginning):
            page.meta["search"] = {"boost": boost}
