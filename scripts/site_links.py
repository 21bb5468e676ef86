"""Hook of mkdocs: what differs between GitHub and the site.

Links from docs/ to other files of the checkout lead to the repository, code in tables needs no backslash
before `|`, and the search finds names in tables without quoting whole tables.
"""

import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent


def on_page_markdown(markdown, page, config, files):
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def lead_out(match):
        path, _, anchor = match[1].partition("#")
        target = (ROOT / folder / path).resolve()
        if (
            not path
            or re.match(r"[a-z]+:", path)
            or not target.exists()
            or target.is_relative_to(ROOT / "docs")
        ):
            return match[0]
        place = f"{config['repo_url']}/blob/main/{target.relative_to(ROOT).as_posix()}"
        return f"]({place}{'#' * bool(anchor)}{anchor})"

    lines = re.sub(r"\]\(([^)\s]+)\)", lead_out, markdown).split("\n")
    return "\n".join(re.sub(r"`[^`]*`", unescape, line) if line.startswith("|") else line for line in lines)


def unescape(code):
    return code[0].replace("\\|", "|")


def on_page_content(html, page, config, files):
    """Leave to the search of each row of a table only the first cell that is one name."""
    return re.sub(r"<tr>.*?</tr>", hide_from_search, html, flags=re.DOTALL)


def hide_from_search(row):
    before, name, after = re.split(r"(<td[^>]*><code>[^<]*</code></td>|$)", row[0], maxsplit=1)
    return name.join(
        re.sub(r"<t[hd](?=[ >])", r"\g<0> data-search-exclude", part) for part in (before, after)
    )
