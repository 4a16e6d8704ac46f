"""Which interface of verifiers there is."""

from importlib.metadata import PackageNotFoundError, version


def tasksets() -> bool:
    """Whether tasksets are the interface: from verifiers 0.4 on."""
    try:
        major, minor, *_ = version("verifiers").split(".")
    except PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= (0, 4)
