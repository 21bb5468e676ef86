"""Output for people: text, tables, progress, sheets, charts, pages.

`text` is for numbers, names and paths, `tables` for tables as text, Markdown, LaTeX and CSV, `progress` for
the bar, `terminal` for pictures in the terminal; `sheets` draws contact sheets, `charts` uses matplotlib;
`html` fills in the pages of ``templates/``.
"""
