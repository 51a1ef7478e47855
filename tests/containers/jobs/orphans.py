"""Leaves children behind that end at once, and looks whether somebody reaps them."""

from __future__ import annotations

import os
import time

import farandole


def zombies() -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                text = file.read()
        except OSError:  # it has ended meanwhile
            continue
        if text.rpartition(")")[2].split()[0] == "Z":
            found.append(text)
    return found


def leave_an_orphan() -> None:
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            time.sleep(0.2)  # its parent has ended by then
        os._exit(0)
    os.waitpid(child, 0)


for _ in range(5):
    leave_an_orphan()
farandole.init()
for _ in range(50):
    time.sleep(0.1)
    left = zombies()
    if not left:
        break
assert not left, left
print("no zombies", flush=True)
