"""Every package below lossscope/, cli/ as lossscope_cli, and the files that are shipped; all else: pyproject.toml."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

SHIPPED = {"lossscope.shipped.checkpoints": "checkpoints", "lossscope.shipped.studies": "studies"}  # beside the code


class BuildFiles(build_py):
    """Copy of the shipped folders their package data alone, no scripts."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules of a package; a shipped folder has none."""
        return [] if package in SHIPPED else super().find_package_modules(package, package_dir)


setup(
    packages=[*find_packages(include=["lossscope", "lossscope.*"]), "lossscope_cli", *SHIPPED],
    package_dir={"lossscope_cli": "cli", **SHIPPED},
    cmdclass={"build_py": BuildFiles},
)
