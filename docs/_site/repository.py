"""Links to pages at the top of the repository, which the site includes under other names."""

_PAGES = {
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "security.md",
    "../CHANGELOG.md": "changelog.md",
}


def on_page_markdown(markdown, page, config, files):
    """Lead to the pages of the site."""
    for in_repository, in_site in _PAGES.items():
        markdown = markdown.replace(f"]({in_repository}", f"]({in_site}")
    return markdown
