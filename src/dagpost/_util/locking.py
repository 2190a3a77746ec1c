"""Locks on open files and folders, which the system lets go of when their process ends, however it ends."""

from __future__ import annotations


def hold(handle: int) -> bool:
    """Whether this process has the lock from now on; where there are no locks, everybody has it.

    Only a lock that somebody else holds refuses: a file system without locks is no reason not to work there.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
