"""The systemd-nspawn provider of the lab.

Read `host.py` first: a host is a disk (`disk.py`), a network namespace with two
cables (`network.py`), a cgroup (`cgroup.py`) and the processes in it. Names and
addresses of the hosts are in `topology.yaml`, directories on this machine in
`place.py`.

No state is stored that can be observed instead. A host runs if its cgroup
contains an init process; it is cut off if its cable is marked as cut. So
`lab down` works after any crash: it finds things by their names.
"""
