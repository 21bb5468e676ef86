"""`robustgen report`: one page about a finished set.

`sampling` looks at a few images; `facts` and `pictures` are what there is to say and to show; `page` puts
them together.
"""
