"""What a training should cost, and the plan for it."""
import html
import importlib.util
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from . import tools
from .networks import Network, PathLike, export

Model = Union[Network, PathLike, Any]


def _network(model: Model, example: Any, loss: Any) -> Union[Network, PathLike]:
    """A path or a known name as it is; a module is exported."""
    if isinstance(model, Network):
        return model
    if isinstance(model, (str, os.PathLike)):
        if example is not None:
            raise tools.UsageError("the example is for a module; leave it out with a path or a name", 2)
        return model
    if example is None:
        raise tools.UsageError("a module needs an example of its input; give one as the second argument", 2)
    return export(model, example, loss=loss)


def _argument(network: Union[Network, PathLike]) -> str:
    return os.fspath(network.path if isinstance(network, Network) else network)


def _in_frame(page: str) -> str:
    return '<iframe style="width:100%%;height:40em;border:0" srcdoc="%s"></iframe>' % html.escape(page, quote=True)


class Expectation:
    """What a training step should take. `figures` has them by name: seconds (`step_s`, `low_s`, `high_s`), bytes
    (`peak_bytes`), and `changes` that would make it faster. Printed it is the screen of `ghp expect`."""

    def __init__(self, words: List[str], network: Any = None):
        self._words, self._network = words, network  # a module's file lives as long as this
        self.figures: Dict[str, Any] = json.loads(tools.run("ghp-expect", [*words, "--json"], keywords=True))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["figures"][name]
        except KeyError:
            raise AttributeError("an expectation has no '%s'; its figures are %s" %
                                 (name, ", ".join(self.__dict__.get("figures", {})))) from None

    def __repr__(self) -> str:
        return tools.run("ghp-expect", self._words)


def expect(model: Model, example: Any = None, *, machine: Optional[PathLike] = None, batch: int,
           nodes: Union[None, int, Sequence[int]] = None, loss: Any = None, **options: tools.Option) -> Expectation:
    """Says what a training step should take on a machine, and what binds it, without measuring anything.

    model     a path, a known name such as "gpt2-124m", a Network, or an nn.Module with an `example` of its input
    machine   one of ghp's named machines, such as "h100-sxm-8" (`ghp-expect --machine list`), or a machine file; leave
              it out with profile="profile.json", a file of ghp-profile's
    batch     samples of one step, of all workers together
    nodes     equal nodes of the machine; None: 1, or as many as the profile has; a list of such numbers: a table, whose
              figures are a list `points`
    options   those of ghp-expect: network="eth-100", precision="bf16", measured="412 samples/s", ...

    Raises Error with ghp-expect's sentence.
    """
    network = _network(model, example, loss)
    if nodes is not None and not isinstance(nodes, (int, str)):
        nodes = ",".join(str(n) for n in nodes)
    words = [_argument(network), *tools.options(dict(options, machine=machine, batch=batch, nodes=nodes))]
    return Expectation(words, network)


class _Shown:
    """A file that ghp-inspect shows as a table, and as a page in a notebook."""

    def __init__(self, path: PathLike, folder: Any = None):
        self.path = Path(path)
        self.data: Dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        self._folder = folder  # a temporary one lives as long as this

    def __repr__(self) -> str:
        return tools.run("ghp-inspect", [self.path])

    def html(self) -> str:
        """The page with drawings, whole, as text. It needs no network."""
        with tempfile.TemporaryDirectory(prefix="ghp-") as folder:
            page = Path(folder) / "page.html"
            tools.run("ghp-inspect", [self.path, "--html", page])
            return page.read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        return _in_frame(self.html())


class Run(_Shown):
    """What ghp-run --run wrote of a training. `data` is the file's content (docs/reference/formats.md)."""


class Plan(_Shown):
    """A plan, for ghp-run and for PyTorch. `data` is the file's content (docs/reference/formats.md).

    step_s       predicted seconds of a step
    baselines    the same of data parallelism ("data"), "model", "owt", of data parallelism whose batch norms take
                 each worker's own samples ("data, local statistics"), and with all parameters sharded ("data, FSDP")
    """

    @property
    def step_s(self) -> float:
        return self.data["predicted"]["predicted_step_s"]

    @property
    def baselines(self) -> Dict[str, float]:
        steps = {}
        for index, one in enumerate(self.data.get("baselines", [])):
            name = one["strategy"]
            if one.get("statistics") == "local":
                name += ", local statistics"
            elif index > 0 and name == "data":
                name += ", FSDP"
            if one["feasible"]:
                steps[name] = one["predicted"]["predicted_step_s"]
        return steps

    def explain(self, layer: Optional[str] = None) -> str:
        """Why the plan costs what it costs; with a layer's name, that layer's instructions too."""
        return tools.run("ghp-inspect", [self.path, "--explain", *([layer] if layer is not None else [])])

    def to_torch(self, module: Any, mesh: Any = None, device: str = "cpu") -> Any:
        """Divides a PyTorch module by the plan, in place, on each rank of a torch.distributed program.

        mesh   the ranks as groups x tensor-parallel size; None: made for `device`

        Returns the plan's Python module: its `samples(batch)` takes a rank's part of a batch, and
        `reduce_gradients(module, mesh)` follows loss.backward(); it also has the mesh, as `used_mesh`. Raises Error if
        PyTorch cannot do what the plan asks for, by the layer's name.
        """
        with tempfile.TemporaryDirectory(prefix="ghp-") as folder:
            file = Path(folder) / "plan.py"
            tools.run("ghp-inspect", [self.path, "--export-torch", file])
            spec = importlib.util.spec_from_file_location("ghp_exported_plan", file)
            made = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(made)
        made.used_mesh = mesh if mesh is not None else made.mesh(device)
        try:
            made.divide(module, made.used_mesh)
        except ValueError as error:
            raise tools.Error(str(error)) from None
        return made


def plan(model: Model, example: Any = None, *, workers: int, batch: int, path: Optional[PathLike] = None,
         loss: Any = None, **options: tools.Option) -> Plan:
    """Finds the fastest plan, and proves how far from the best one it can be.

    model     a path, a known name such as "gpt2-124m", a Network, or an nn.Module with an `example` of its input
    workers   ranks that will train
    batch     global batch [samples], a multiple of the workers
    path      the plan's file; None: a temporary file that goes with the returned object
    options   those of ghp-plan: profile="profile.json" that was measured, or machine="h100-sxm-8" and nodes=2;
              precision="bf16", memory="40GiB", optimizer="adamw", freeze=["layer1.*"], pipeline="auto", ...

    Raises Error with ghp-plan's sentence; NoPlanError if nothing fits the memory, which says how little would do.
    """
    network = _network(model, example, loss)
    folder = None if path is not None else tempfile.TemporaryDirectory(prefix="ghp-")
    target = Path(path) if path is not None else Path(folder.name) / "plan.json"
    tools.run("ghp-plan", [_argument(network), *tools.options(dict(options, workers=workers, batch=batch)), "--output",
                           target], keywords=True)
    return Plan(target, folder)
