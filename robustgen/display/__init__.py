"""Output for people: text, tables, progress, sheets, charts, pages.

`text` is for numbers, names, paths and tables, `progress` for the bar, `sheets` for contact sheets and
pictures in the terminal; `charts` uses matplotlib; `html` fills in the pages of ``templates/``.
"""
