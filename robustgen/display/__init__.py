"""Output for people: text, progress, sheets, charts, pages.

`text` is for numbers, names and paths, `progress` for the bar, `terminal` for pictures in the terminal;
`sheets` draws contact sheets, `charts` uses matplotlib; `html` fills in the pages of ``templates/``.
"""
