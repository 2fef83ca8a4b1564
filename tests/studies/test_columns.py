from mtl.studies.columns import aligned


def test_columns_line_up() -> None:
    assert aligned(("name", "n", "label"), [("a", "1,000", "x"), ("long name", "2", "long")], left=(0, 2)) == [
        "name           n  label",
        "a          1,000  x",
        "long name      2  long",
    ]


def test_wide_characters_take_two_columns() -> None:
    assert aligned(("a", "b"), [("中文", "1"), ("abcd", "2")]) == ["a     b", "中文  1", "abcd  2"]


def test_a_header_alone() -> None:
    assert aligned(("a", "bc"), []) == ["a  bc"]
