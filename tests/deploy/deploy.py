"""Renders the chart by Helm's own engine, and validates what comes of it, for the tests beside it.

    deploy.py                          a request in JSON a line on stdin, an answer a line on stdout
    deploy.py --manifests DIRECTORY    writes the plain manifests, and the chart's copy of the alerts

A request has one of:

    "values"    to render the chart with; answered by "refused", why Helm wouldn't, or by "objects",
                "manifests" (texts by file name) and "notes"
    "lint"      values to lint the chart with; answered by "findings"
    "objects"   to validate by the schemas of the API; answered by "findings"
    "file"      a file of YAML to read; answered by "objects"
    "toml"      a text to read; answered by "table"

Must never reach a cluster, nor the net.
"""

import json
import shutil
import sys
import tomllib
from pathlib import Path

import helm_python
import jsonschema
import kubernetes_validate
import yaml

HERE = Path(__file__).parent
DEPLOY = HERE.parent.parent / "deploy"
CHART = DEPLOY / "helm" / "soloist"
# The oldest that Chart.yaml lets in, and the newest that the schemas know.
API_VERSIONS = ["1.29", kubernetes_validate.latest_version()]
RELEASE = {"name": "soloist", "namespace": "default"}
# Of what only Helm puts up.
HELMS_OWN = ("helm.sh/chart:", "app.kubernetes.io/managed-by:")
WARNING = 2
# What the API server learns from the Prometheus Operator; what we say of them is described here.
OPERATORS = ("ServiceMonitor", "PrometheusRule")


class Strict(yaml.SafeLoader):
    """Refuses a key that stands twice, as the API server does."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.YAMLError(f"key twice{node.start_mark}: {twice[0]}")
        return super().construct_mapping(node, deep=deep)


def documents(text):
    return [document for document in yaml.load_all(text, Loader=Strict) if document]


def render(values):
    """Templates by name, and what they hold."""
    with helm_python.Chart.load(str(CHART)) as chart:
        chart.validate_schema(chart.merge_values(values))
        rendered = chart.render(values, **RELEASE)
    return {name.split("templates/", 1)[1]: text for name, text in sorted(rendered.items())}


def lint(values):
    report = helm_python.lint(str(CHART), values, strict=True)
    messages = [m["error"] for m in report["messages"] if m["severity"] >= WARNING]
    return messages + report["errors"]


def findings(objects):
    for thing in objects:
        for version in API_VERSIONS:
            try:
                validate(thing, version)
            except jsonschema.ValidationError as error:
                place = ".".join(str(part) for part in error.absolute_path)
                yield f"{thing['kind']} by {version}: {place}: {error.message}"


def validate(thing, version):
    if thing["kind"] in OPERATORS:
        schema = json.loads((HERE / f"{thing['kind'].lower()}.schema.json").read_text())
        jsonschema.validate(thing, schema)
    else:
        kubernetes_validate.validate(thing, version, strict=True)


def manifests(templates):
    """The plain manifests, by file name: what there is without Helm."""
    plain = {}
    for name, text in templates.items():
        if "/" in name or name.endswith(".txt") or not documents(text):
            continue
        lines = text.strip().splitlines()
        kept = [line for line in lines if not line.strip().startswith(HELMS_OWN)]
        plain[name] = "# Rendered from deploy/helm/soloist by `make manifests`.\n" + "\n".join(kept) + "\n"
    return plain


def answer(request):
    if "file" in request:
        return {"objects": documents(Path(request["file"]).read_text())}
    if "toml" in request:
        return {"table": tomllib.loads(request["toml"])}
    if "objects" in request:
        return {"findings": list(findings(request["objects"]))}
    if "lint" in request:
        return {"findings": lint(request["lint"])}
    try:
        templates = render(request["values"])
    except helm_python.HelmError as error:
        return {"refused": str(error)}
    manifest = [text for name, text in templates.items() if name.endswith(".yaml")]
    return {
        "objects": [document for text in manifest for document in documents(text)],
        "manifests": manifests(templates),
        "notes": templates["NOTES.txt"],
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--manifests"]:
        folder = Path(sys.argv[2])
        # Helm sees no file beyond its chart, and those who unpack charts drop links.
        shutil.copyfile(DEPLOY / "prometheus" / "alerts.yaml", CHART / "files" / "alerts.yaml")
        for old in folder.glob("*.yaml"):
            old.unlink()
        for name, text in manifests(render({})).items():
            (folder / name).write_text(text)
    else:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
