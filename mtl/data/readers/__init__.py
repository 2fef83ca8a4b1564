"""One file for each format that users' rows come in; each gives a Table of text, with the line of every row."""
