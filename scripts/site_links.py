"""Hook of mkdocs: links from docs/ to other files of the checkout lead to the repository."""

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

    return re.sub(r"\]\(([^)\s]+)\)", lead_out, markdown)
