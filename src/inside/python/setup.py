# SPDX-License-Identifier: Apache-2.0
"""The wheel of cufrag: scripts/build/wheel.sh puts the program and its libraries into the package first."""
import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    """For this platform, and any Python 3: nothing is compiled against it."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(name="cufrag", version=os.environ.get("CUFRAG_VERSION", "0"),
      description="CUDA memory fragmentation: simulator, and its policies as PyTorch's allocator",
      license="Apache-2.0", python_requires=">=3.8", packages=["cufrag"],
      package_data={"cufrag": ["cufrag", "*.so", "cufrag.libs/*", "licenses/*"]},
      entry_points={"console_scripts": ["cufrag = cufrag.program:main"]},
      distclass=Binary, cmdclass={"bdist_wheel": AnyPython}, zip_safe=False)
