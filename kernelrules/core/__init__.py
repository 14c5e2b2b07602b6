"""The compiled core: typed, without the GIL, without Python objects; it knows pointers, sizes and status codes."""
