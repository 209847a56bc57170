"""The systemd-nspawn provider of the lab.

Read `host.py` first: a host is a disk (`disk.py`), a place on two networks
(`network.py`), a cgroup (`cgroup.py`) and the processes in it. What the hosts
are called and where they stand is `topology.yaml`; where their things lie on
this machine is `place.py`.

Nothing is remembered that can be observed instead. A host runs if its cgroup
holds an init process; it is cut off if its cable is marked as pulled. That is
why `lab down` works after any crash: it looks for names, not for notes.
"""
