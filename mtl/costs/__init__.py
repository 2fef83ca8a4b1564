"""What a training costs before it is run: operations, time, memory and disk, from shapes and lengths alone."""
