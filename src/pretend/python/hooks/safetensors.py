# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import tempfile

import cufrag_protocol as protocol
from cufrag_hooks import hook, replace


@hook("safetensors._safetensors_rust", release="safetensors", purpose="safetensors held back")
def write_beside(card, module):
    """Since 0.8 safetensors renames a temporary file with a system call of its own, which the
    library that holds writes back does not see. So its file is made in the recording's folder,
    where nothing is held back, and moved by Python."""
    original = module.serialize_file

    def serialize_file(tensors, filename, *args, **kwargs):
        if not protocol.HELD:
            return original(tensors, filename, *args, **kwargs)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(protocol.HELD)) as folder:
            name = os.path.join(folder, "file")
            original(tensors, name, *args, **kwargs)
            shutil.move(name, os.fspath(filename))
    module.serialize_file = serialize_file
    replace(original, serialize_file)
