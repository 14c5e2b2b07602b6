"""What a file of Python imports when it is loaded, read off its text."""

import ast


def imports(path):
    """(package, line) of the imports at the top level of a file, which it cannot be loaded without."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        yield from ((name.split(".")[0], node.lineno) for name in names)
