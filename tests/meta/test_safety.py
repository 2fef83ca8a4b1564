"""Nothing that is read can run as code, and no failure is swallowed."""

import ast
from pathlib import Path

import pytest
from package_sources import Module, all_modules, imports, parse

MODULES_THAT_RUN_WHAT_THEY_READ = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
FORBIDDEN_CALLS = {
    "eval", "exec", "os.system", "os.popen", "torch.load", "yaml.load", "yaml.load_all", "yaml.unsafe_load",
    "yaml.unsafe_load_all", "yaml.full_load", "yaml.full_load_all", "pandas.read_pickle", "pd.read_pickle",
    "subprocess.getoutput", "subprocess.getstatusoutput",
}  # fmt: skip
FORBIDDEN_IMPORTS = {name for name in FORBIDDEN_CALLS if "." in name}
OPTIONS_THAT_STAY_OFF = {"shell", "trust_remote_code", "allow_pickle"}


def complaint(node: ast.AST) -> str | None:
    """What is unsafe about one call or one exception handler."""
    if isinstance(node, ast.Call):
        if ast.unparse(node.func) in FORBIDDEN_CALLS:
            return f"calls {ast.unparse(node.func)}"
        for keyword in node.keywords:
            off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg in OPTIONS_THAT_STAY_OFF and not off:
                return f"sets {keyword.arg}={ast.unparse(keyword.value)}"
    if isinstance(node, ast.ExceptHandler) and is_blanket(node):
        return "catches every exception and goes on"
    return None


def is_blanket(handler: ast.ExceptHandler) -> bool:
    """Catches everything, and does not end by raising again, as a handler that only tidies up does."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    everything = any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in caught)
    return everything and not isinstance(handler.body[-1], ast.Raise)


def unsafe(module: Module) -> list[str]:
    """Each unsafe import, call and handler of a module, as readable lines."""
    found = []
    for name, line in imports(module):
        if name.split(".")[0] in MODULES_THAT_RUN_WHAT_THEY_READ or name in FORBIDDEN_IMPORTS:
            found.append(f"{module.name}:{line} imports {name}")
    for node in ast.walk(module.tree):
        problem = complaint(node)
        if problem:
            found.append(f"{module.name}:{getattr(node, 'lineno', 0)} {problem}")
    return found


def test_the_package_is_safe() -> None:
    found = [line for module in all_modules() for line in unsafe(module)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "from torch import load",
        "torch.load(path, weights_only=True)",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "eval(text)",
        "exec(text)",
        "subprocess.run(command, shell=True)",
        "subprocess.run(command, shell=flag)",
        "load(path, trust_remote_code=True)",
        "numpy.load(path, allow_pickle=True)",
        "try:\n    a()\nexcept:\n    pass",
        "try:\n    a()\nexcept Exception as error:\n    log(error)",
        "try:\n    a()\nexcept (ValueError, BaseException):\n    b()",
    ],
)
def test_unsafe_code_is_seen(text: str) -> None:
    assert unsafe(parse("mtl.example", Path("example.py"), text))


@pytest.mark.parametrize(
    "text",
    [
        "model.eval()",
        "yaml.safe_load(text)",
        "numpy.load(path, allow_pickle=False)",
        "subprocess.run(command, check=True)",
        "try:\n    a()\nexcept ValueError:\n    b()",
        "try:\n    a()\nexcept BaseException:\n    tidy()\n    raise",
    ],
)
def test_safe_code_passes(text: str) -> None:
    assert unsafe(parse("mtl.example", Path("example.py"), text)) == []
