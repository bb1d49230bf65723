"""Every package below lossscope/, and the folder cli/ under the name lossscope_cli; all else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["lossscope", "lossscope.*"]), "lossscope_cli"],
    package_dir={"lossscope_cli": "cli"},
)
