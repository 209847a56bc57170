"""What is served: files of a bundle that stand for many, an image, and the images as the registry stores them."""

import json
import os

import yaml

from checks import Failed


class Content:
    """Of one bundle. Its manifest is what it is known by."""

    def __init__(self, bundle):
        self.bundle = bundle
        with open(os.path.join(bundle, "bundle.yaml"), encoding="utf-8") as file:
            self._manifest = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.kubernetes = self._manifest["versions"]["kubernetes"]

    def paths(self):
        """One request path for each row of throughput: an index of about 50 kB, a package of about 5 MB, the largest blob."""
        sizes = {path: record["size"] for path, record in self._manifest["files"].items()}

        def nearest(prefix, suffix, size):
            found = [path for path in sizes if path.startswith(prefix) and path.endswith(suffix)]
            return min(found, key=lambda path: abs(sizes[path] - size))

        layers = [(layer["size"], name, layer["digest"]) for name in self._manifest["images"] for layer in self._blobs(name)]
        _, name, digest = max(layers)
        return {
            "indexes": f"/bundles/{self.kubernetes}/{nearest('apt/dists/', '', 50_000)}",
            "packages": f"/bundles/{self.kubernetes}/{nearest('apt/', '.deb', 5_000_000)}",
            "blobs": _blob(name, digest),
        }

    def image(self):
        """The request paths of the largest image, in the order of a pull, and the bytes of them together."""
        name = max(self._manifest["images"], key=lambda name: sum(blob["size"] for blob in self._blobs(name)))
        blobs = self._blobs(name)
        repository, tag = _repository(name)
        size = sum(blob["size"] for blob in blobs) + len(self._image_manifest(name))
        return [f"/v2/{repository}/manifests/{tag}?ns={_host(name)}", *(_blob(name, blob["digest"]) for blob in blobs)], size

    def write_registry(self, directory):
        """All images in the storage of the distribution registry (v3, `filesystem`), its blobs as links to the bundle's."""
        root = os.path.join(directory, "docker", "registry", "v2")
        for name, digest in self._manifest["images"].items():
            repository, tag = _repository(name)
            store = os.path.join(root, "repositories", _host(name), repository)
            manifest = f"sha256:{digest}"
            _link(store, "_manifests/revisions", manifest)
            _link(store, f"_manifests/tags/{tag}/index", manifest)
            _write(os.path.join(store, "_manifests/tags", tag, "current", "link"), manifest)
            for blob in [manifest, *(blob["digest"] for blob in self._blobs(name))]:
                _link(store, "_layers", blob)
                digits = blob.removeprefix("sha256:")
                place = os.path.join(root, "blobs", "sha256", digits[:2], digits)
                os.makedirs(place, exist_ok=True)
                if not os.path.lexists(data := os.path.join(place, "data")):
                    os.symlink(os.path.join(self.bundle, "images/blobs/sha256", digits), data)

    def package(self, name):
        """The path of a package of ours."""
        found = [package["path"] for package in self._manifest["packages"] if package["name"] == name and package["path"].endswith(".deb")]
        if not found:
            raise Failed(f"{self.bundle} has no package {name}")
        return os.path.join(self.bundle, found[0])

    def _image_manifest(self, name):
        with open(os.path.join(self.bundle, "images/blobs/sha256", self._manifest["images"][name]), "rb") as file:
            return file.read()

    def _blobs(self, name):
        manifest = json.loads(self._image_manifest(name))
        return [manifest["config"], *manifest["layers"]]


def with_patch_version(text, name, step):
    """A component list in which one component has a later patch version, and one that consists of that component alone.

    The version exists in the list only: its modules are those of the version that was there.
    """
    patched = yaml.safe_load(text)
    component = next(component for component in patched["components"] if component["name"] == name)
    version = component["version"]
    line, patch = version.rsplit(".", 1)
    component["version"] = f"{line}.{int(patch) + step}"
    source = component["sources"] = {"go": component["sources"]["go"]}
    modules = source["go"].get("requires", {})
    source["go"]["requires"] = {module: of.replace("{version}", version) for module, of in modules.items()}
    systems = [{**system, "packages": []} for system in patched["operating_systems"]]
    return patched, {**patched, "operating_systems": systems, "components": [component]}


def _host(name):
    return name.split("/", 1)[0]


def _repository(name):
    return name.split("/", 1)[1].rsplit(":", 1)


def _blob(name, digest):
    return f"/v2/{_repository(name)[0]}/blobs/{digest}?ns={_host(name)}"


def _link(store, directory, digest):
    algorithm, digits = digest.split(":")
    _write(os.path.join(store, directory, algorithm, digits, "link"), digest)


def _write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
