"""Several processes that train one model together, started by `torchrun -m unordinal train ...`.

Every process does its share of the parts into which a batch is cut, with the whole model or, where its weights are
sharded (sharding.py), with those that it gathers from the others. Once a step the gradients
and the losses of all parts are summed over the processes, so that all of them take the same step. Validations and
scores are shared out likewise. Only rank 0 writes files and prints.
"""

import datetime
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from unordinal.errors import GROUP_ENDED, RunError
from unordinal.progress import Advance, Progress

# How long a process waits for another that is at work, on a long file of samples say. One that has died is noticed at
# once, by its connections.
PATIENCE = datetime.timedelta(days=7)


@dataclass(frozen=True)
class Group:
    """The processes that train together. A group of one does everything itself.

    Args:
        rank: the number of this process, from 0.
        size: how many processes there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes files and prints."""
        return self.rank == 0

    def share_of(self, num_parts: int) -> range:
        """Return which parts of a batch this process does; there are a multiple of `size` of them.

        >>> [list(Group(rank, 2).share_of(4)) for rank in (0, 1)]
        [[0, 1], [2, 3]]
        """
        each = num_parts // self.size
        return range(self.rank * each, (self.rank + 1) * each)

    def turns(self, num: int) -> range:
        """Return which of `num` batches this process scores or draws.

        >>> [list(Group(rank, 2).turns(5)) for rank in (0, 1)]
        [[0, 2, 4], [1, 3]]
        """
        return range(self.rank, num, self.size)

    @contextmanager
    def progress(self, progress: Progress, description: str, total: float) -> Iterator[Advance]:
        """Show the progress of all processes, each of which does about as much as this one."""
        with progress(description, total) as advance:
            yield lambda amount: advance(amount * self.size)

    def summed(self, values: Tensor) -> Tensor:
        """Return the sum over processes of values on the CPU."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def sum_gradients(self, parameters: Iterable[nn.Parameter], losses: Tensor) -> None:
        """Replace gradients, and losses in which only this process's own are not zero, by their sums over processes."""
        if self.size == 1:
            return
        kept = [p for p in parameters if p.requires_grad]
        dense = [p for p in kept if p.grad is None or not p.grad.is_sparse]
        flat = [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in dense]
        has_gradient = torch.tensor([p.grad is not None for p in dense], dtype=losses.dtype, device=losses.device)
        whole = torch.cat([part.to(losses.dtype) for part in (*flat, has_gradient)] + [losses])
        dist.all_reduce(whole)
        sizes = [part.numel() for part in flat] + [len(dense), len(losses)]
        *sums, num_with, all_losses = whole.split(sizes)
        losses.copy_(all_losses)
        for p, total, count in zip(dense, sums, num_with.tolist(), strict=True):
            # An unused weight has no gradient, as in one process. Gradients have the layout of the weights in memory:
            # fused optimisers go through both in the order of memory.
            p.grad = torch.empty_like(p).copy_(total.view_as(p)) if count else None
        for p in kept:
            if p.grad is not None and p.grad.is_sparse:
                p.grad = self.summed_rows(p.grad.coalesce())

    def summed_rows(self, gradient: Tensor) -> Tensor:
        """Return the sum over processes of a gradient of which few rows are not zero."""
        count = torch.tensor([gradient.indices().shape[1]], device=gradient.device)
        counts = [torch.zeros_like(count) for _ in range(self.size)]
        dist.all_gather(counts, count)
        most = int(max(counts))
        rows = gradient.values().new_zeros((most, *gradient.shape[1:]))
        places = gradient.indices().new_zeros(most)
        rows[: int(count)], places[: int(count)] = gradient.values(), gradient.indices()[0]
        all_rows, all_places = ([torch.zeros_like(x) for _ in range(self.size)] for x in (rows, places))
        dist.all_gather(all_rows, rows)
        dist.all_gather(all_places, places)
        kept = [slice(0, int(n)) for n in counts]
        where = torch.cat([x[part] for x, part in zip(all_places, kept, strict=True)])
        values = torch.cat([x[part] for x, part in zip(all_rows, kept, strict=True)])
        return torch.sparse_coo_tensor(where.unsqueeze(0), values, gradient.shape).coalesce()

    def broadcast(self, value: Any) -> Any:
        """Return the value of rank 0 on every rank; plain values only."""
        return (
            json.loads(self.broadcast_bytes(json.dumps(value).encode() if self.is_first else b""))
            if self.size > 1
            else value
        )

    def broadcast_state(self, state: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the state of a checkpoint that rank 0 broadcasts; None if there is no checkpoint."""
        if self.size == 1:
            return state
        file = io.BytesIO()
        if self.is_first and state is not None:
            torch.save(state, file)
        raw = self.broadcast_bytes(file.getvalue())
        return torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True) if raw else None

    def broadcast_bytes(self, raw: bytes) -> bytes:
        size = torch.tensor([len(raw)])
        dist.broadcast(size, 0)
        whole = torch.zeros(int(size), dtype=torch.uint8)
        if self.is_first and raw:
            whole = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
        dist.broadcast(whole, 0)
        return whole.numpy().tobytes()

    def largest(self, value: int) -> int:
        """Return the largest number that any process gives."""
        if self.size == 1:
            return value
        found = torch.tensor([value])
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    @contextmanager
    def one_first(self) -> Iterator[None]:
        """Let rank 0 run a block first, such as the preparation of data, and the other ranks after it."""
        if self.size > 1 and not self.is_first:
            dist.barrier()
        yield
        if self.size > 1 and self.is_first:
            dist.barrier()


ALONE = Group()
_group = ALONE


def current_group() -> Group:
    """Return the processes that this one trains with."""
    return _group


def own_gpu(count: int) -> int:
    """Return which of the GPUs that this process sees is its own."""
    return int(os.environ.get("LOCAL_RANK", "0")) % count  # some launchers let each process see only its own


@contextmanager
def joined() -> Iterator[Group]:
    """Join the processes that torchrun started; without torchrun, a group of one."""
    global _group  # noqa: PLW0603
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "RANK" not in os.environ:
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(own_gpu(torch.cuda.device_count()))
    store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))
    # torchrun keeps its store when it restarts processes: without a name of their own they would find, and call, the
    # addresses of those that have died.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"attempt-{attempt}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    _group = Group(rank, size)
    try:
        yield _group
        dist.barrier()  # do not leave while other ranks wait for a message of this one
    except RuntimeError as error:
        if "gloo" not in str(error).lower() and "nccl" not in str(error).lower():
            raise
        raise RunError(f"{GROUP_ENDED}; continue with `resume`") from error
    finally:
        _group = ALONE
        dist.destroy_process_group()
