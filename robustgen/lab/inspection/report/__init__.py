"""`robustgen report`: one page about a finished set.

`sampling` reads a few images; `facts` and `pictures` provide the content; `page` puts it together.
"""
