"""Seeing what is made.

`sheets` draws labelled contact sheets, `previewing` chooses what stands on them, and `terminal` shows a
picture where the terminal can.

`similarity` measures how alike two images are. `comparing` tells whether two sets are equivalent, from the
images that `pairing` reads from both by the tests in `equivalence`; `comparison_report` shows it.
`calibrating` measures how strong the corruptions are, and proposes constants for other sizes.

`summary` collects what the page of `robustgen report` shows, from the images that `sampling` looks at.
"""
