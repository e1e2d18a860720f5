"""A plan of ghp, carried out by PyTorch on a module with the layers of the plan's network.

    import plan                               # this file, on each rank, after init_process_group
    mesh = plan.mesh("cpu")                   # or "cuda"
    plan.divide(module, mesh)                 # in place; all ranks begin with the same weights
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    loss = criterion(module(plan.samples(inputs)), plan.samples(labels))
    loss.backward()
    plan.reduce_gradients(module, mesh)       # of the mean over the whole batch
    optimizer.step()

GROUPS x TENSOR_SIZE ranks. Each has its own samples of a batch. The layers of LAYERS are divided over TENSOR_SIZE
ranks, by columns (their outputs) or rows (their inputs). Parameters of SHARDED are sharded by FSDP2's fully_shard, and
gathered for each pass or once for both. All others are whole on every rank. Batch norms take the
statistics of all ranks' samples if GLOBAL_NORMS says so.
"""
import types

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

# where a tensor's parts are: "batch", each rank has its samples; "channel", all samples of the ranks that share a layer
PLACEMENTS = {"batch": Shard(0), "channel": Shard(-1)}


def mesh(device):
    """The ranks as GROUPS x TENSOR_SIZE."""
    if dist.get_world_size() != GROUPS * TENSOR_SIZE:
        raise ValueError("the plan of %s is for %d ranks, not %d" %
                         (NAME, GROUPS * TENSOR_SIZE, dist.get_world_size()))
    return init_device_mesh(device, (GROUPS, TENSOR_SIZE), mesh_dim_names=("data", "tensor"))


def find_linear(module, name, features):
    try:
        layer = module.get_submodule(name)
    except AttributeError:
        raise ValueError("the module has no '%s', which the plan of %s divides" % (name, NAME)) from None
    if not isinstance(layer, nn.Linear) or (layer.in_features, layer.out_features) != features:
        raise ValueError("'%s' is no Linear of %d by %d features, as the plan of %s has it" % (name, *features, NAME))


class SumOfRanks(torch.autograd.Function):
    """The sum of a tensor over all ranks; the gradient is summed as well, since every rank uses the sum."""

    @staticmethod
    def forward(context, tensor):
        total = tensor.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context, gradient):
        total = gradient.clone()
        dist.all_reduce(total)
        return total


def normalise(norm, x):
    """The forward pass of a batch norm by the statistics of all ranks, which have equally many samples."""
    if not norm.training:
        return type(norm).forward(norm, x)
    axes, shape, ranks = [0, *range(2, x.dim())], [1, -1] + [1] * (x.dim() - 2), dist.get_world_size()
    mean = SumOfRanks.apply(x.mean(axes)) / ranks
    centred = x - mean.view(shape)
    variance = SumOfRanks.apply(centred.square().mean(axes)) / ranks
    if norm.track_running_stats:
        values = ranks * x.numel() // x.shape[1]
        norm.num_batches_tracked += 1
        share = 1 / norm.num_batches_tracked.item() if norm.momentum is None else norm.momentum
        norm.running_mean.lerp_(mean.detach(), share)
        norm.running_var.lerp_(variance.detach() * values / (values - 1), share)
    y = centred * torch.rsqrt(variance + norm.eps).view(shape)
    return y * norm.weight.view(shape) + norm.bias.view(shape) if norm.affine else y


def divide(module, mesh):
    """Divides the parameters of LAYERS over the mesh's second dimension and shards those of SHARDED over its first, in
    place."""
    styles = {}
    for norm in module.modules():
        if GLOBAL_NORMS and isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.forward = types.MethodType(normalise, norm)
    for name, way, comes, goes, *features in LAYERS:
        find_linear(module, name, tuple(features))
        style = ColwiseParallel if way == "column" else RowwiseParallel
        styles[name] = style(input_layouts=PLACEMENTS[comes], output_layouts=PLACEMENTS[goes])
    for name, each_pass in SHARDED:
        try:
            layer = module.get_submodule(name)
        except AttributeError:
            raise ValueError("the module has no '%s', which the plan of %s shards" % (name, NAME)) from None
        fully_shard(layer, mesh=mesh["data"], reshard_after_forward=each_pass)
    return parallelize_module(module, mesh["tensor"], styles)


def samples(batch):
    """This rank's part of a whole batch, by its first dimension."""
    each = len(batch) // dist.get_world_size()
    return batch[each * dist.get_rank():each * (dist.get_rank() + 1)]


def reduce_gradients(module, mesh):
    """From the gradients of each rank's mean loss to those of the whole batch's."""
    for parameter in module.parameters():
        if parameter.grad is None:
            continue
        if isinstance(parameter, DTensor) and parameter.device_mesh.mesh_dim_names == ("data",):
            continue  # fully_shard has done it
        if isinstance(parameter, DTensor):  # summed over the ranks that share it already
            whole = parameter.grad.redistribute(placements=parameter.placements)
            gradient = whole.to_local().contiguous()
            dist.all_reduce(gradient, group=mesh["data"].get_group())
            gradient /= dist.get_world_size()
            parameter.grad = DTensor.from_local(gradient, parameter.device_mesh, parameter.placements,
                                                shape=parameter.shape, stride=parameter.stride())
        else:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


# the plan
