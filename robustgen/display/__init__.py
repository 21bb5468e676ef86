"""Output for people: text, progress, sheets, charts, pages.

`text` for numbers, names and paths, `progress` for the bar, `terminal` for pictures in it; `sheets` draws
contact sheets, `charts` by matplotlib; `html` fills in the pages of ``templates/``.
"""
