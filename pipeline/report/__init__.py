"""What people look at: charts, and one page that holds them and all that a reader asks next.

`page.html` writes the page from a `Study`; `panels.picture` is the picture of `onset table`.
"""
