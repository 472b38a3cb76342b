# SPDX-License-Identifier: Apache-2.0
"""The wheel of cufrag: scripts/build/wheel.sh puts the programs into the package first, and says what they run on."""
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
        return ("py3", "none", os.environ["CUFRAG_PLATFORM"])


setup(name="cufrag", version=os.environ["CUFRAG_VERSION"],
      description="Replays a job's GPU memory history through any allocation policy, and runs those in PyTorch",
      long_description=open("README.md", encoding="utf-8").read(), long_description_content_type="text/markdown",
      license="Apache-2.0", python_requires=">=3.8", packages=["cufrag"],
      keywords=["CUDA", "GPU", "memory", "fragmentation", "PyTorch", "allocator", "out of memory"],
      classifiers=["Environment :: Console", "Environment :: GPU :: NVIDIA CUDA", "Operating System :: POSIX :: Linux",
                   "Programming Language :: Python :: 3", "Programming Language :: C",
                   "Topic :: Software Development :: Debuggers"],
      package_data={"cufrag": ["py.typed", "cufrag", "share/cufrag/plot/*", "share/cufrag/inject/*", "share/cufrag/inject/*/*",
                               "share/cufrag/traces/*", "licenses/*"]},
      extras_require={"notebook": ["numpy"], "plot": ["numpy", "pandas", "matplotlib"]},
      entry_points={"console_scripts": ["cufrag = cufrag.program:main"]},
      distclass=Binary, cmdclass={"bdist_wheel": AnyPython}, zip_safe=False)
