"""Run a program as the user `nobody` that root started: PostgreSQL refuses to run as root.

    python -m phronesis_local.unprivileged PROGRAM ARGUMENT...

The program keeps the one capability to pass by file permissions, so that folders which only root may enter (a home,
a temporary folder, the one that the programs are installed in) need not be opened to every user of the machine.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct
import sys

USER = "nobody"
_KEEP_CAPABILITIES, _SECURE_BITS, _AMBIENT, _RAISE = 8, 28, 47, 2
_NO_SETUID_FIXUP = 1 << 2
_DAC_OVERRIDE = 1
_VERSION_3 = 0x20080522


def _become(user: pwd.struct_passwd) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
    # Without it access(2), by which `initdb` looks for `postgres`, would not count the capability.
    libc.prctl(_SECURE_BITS, _NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    bit = 1 << _DAC_OVERRIDE
    header = struct.pack("=Ii", _VERSION_3, 0)
    sets = struct.pack("=IIIIII", bit, bit, bit, 0, 0, 0)  # effective, permitted, inheritable, and their upper halves
    if libc.capset(header, sets) == 0:
        libc.prctl(_AMBIENT, _RAISE, _DAC_OVERRIDE, 0, 0)


def main() -> None:
    os.umask(0o077)
    _become(pwd.getpwnam(USER))
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
