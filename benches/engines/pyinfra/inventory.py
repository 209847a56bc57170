import json
import os
from pathlib import Path

nodes = json.loads((Path(os.environ["STATE"]) / "hosts.json").read_text())
# Addresses, the key and the hosts' keys come from the ssh configuration.
all = [(name, {"node": node}) for name, node in nodes.items()]
