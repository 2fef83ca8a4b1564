"""A study on one HTML page: gathered from its files (``content``), told in sections, written as one file (``page``)."""
