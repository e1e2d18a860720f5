"""ghp from Python: plans of hybrid-parallel training for PyTorch modules, and how fast a training should be.

    import ghp

    network = ghp.export(module, example)                            # checked against the module
    print(ghp.expect(network, machine="h100-sxm-8", nodes=2, batch=512))
    plan = ghp.plan(network, machine="h100-sxm-8", nodes=2, workers=16, batch=512)
    print(plan.explain())
    plan.to_torch(module)                                            # on each rank of a torch.distributed program
    ghp.load(module, "trained")                                      # weights that ghp-run trained

Nothing here needs MPI or a GPU. Every option of ghp-plan and ghp-expect is a keyword of `plan` and `expect`. What a
tool refuses is raised as `ghp.Error` with the tool's own sentence, which names a remedy.
"""
from .networks import Network, export, load
from .plans import Expectation, Plan, Run, expect, plan
from .tools import Error, NoPlanError, UsageError, version

__all__ = ["Error", "Expectation", "Network", "NoPlanError", "Plan", "Run", "UsageError", "expect", "export", "load",
           "plan", "version"]


def __getattr__(name: str) -> str:
    if name == "__version__":  # asks a tool, which `import ghp` need not wait for
        return version()
    raise AttributeError("ghp has no '%s'" % name)
