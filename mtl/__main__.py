"""`python -m mtl` is the command `mtl`."""

from mtl.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
