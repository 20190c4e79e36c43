"""Finds the interpreters to test with: PATH, /usr/bin, pyenv, and the Debian forky chroot.

An interpreter is (name, minor version, prefix, command, root): `prefix` enters the chroot,
`root` is the folder that the command then sees as "/"; both are empty outside the chroot. One per version and place.
"""

import glob
import os
import re
import shutil
import subprocess

ASK = ("import sys, sysconfig; print(sys.implementation.name, '.'.join(map(str, sys.version_info[:3])), "
       "sys.version_info[1], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)")


def ask(command):
    try:
        answer = subprocess.run(command + ["-I", "-S", "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, timeout=60, env={"PATH": "/usr/bin:/bin"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = answer.stdout.split()
    return words if answer.returncode == 0 and len(words) == 4 else None


def chroot_folder():
    """The newest chroot made by scripts/environment/chroot.mjs; "" if there is none."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    links = [path for path in glob.glob(os.path.join(cache, "tidemark", "forky-*")) if os.path.islink(path)]
    return max(links, key=lambda link: os.lstat(link).st_mtime, default="")


def candidates():
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    folders = ["/usr/bin", "/usr/local/bin"] + os.environ.get("PATH", "").split(":")
    folders += glob.glob(os.path.join(pyenv, "versions", "3.*", "bin"))
    paths = set()
    for folder in folders:
        if folder and "shims" not in folder:
            for path in glob.glob(os.path.join(folder, "python3*")):
                if re.fullmatch(r"python3(\.\d+)?", os.path.basename(path)):
                    paths.add(os.path.realpath(path))
    for path in sorted(paths):
        yield [], [path], ""
    root, chroot = chroot_folder(), shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if chroot and os.path.isdir(root) and os.geteuid() == 0:
        for path in sorted(glob.glob(os.path.join(root, "usr/bin/python3.*"))):
            if re.fullmatch(r"python3\.\d+", os.path.basename(path)):
                yield [chroot, root], ["/usr/bin/" + os.path.basename(path)], root


def shared_library(command):
    """The path of the libpython that an interpreter is linked to, or None."""
    program = ("import sysconfig as s, os; p = os.path.join(s.get_config_var('LIBDIR') or '', "
               "s.get_config_var('LDLIBRARY') or ''); print(p if p.endswith('.so') and os.path.exists(p) else '')")
    return subprocess.check_output(command + ["-I", "-S", "-c", program], text=True).strip() or None


def interpreters():
    seen = set()
    for prefix, command, root in candidates():
        words = ask(prefix + command)
        if not words or words[0] != "cpython" or words[3] != "0" or not 9 <= int(words[2]) <= 15:
            continue
        name = f"{words[1]}{' (forky)' if root else ''}"
        if name not in seen:
            seen.add(name)
            yield name, int(words[2]), prefix, command, root
