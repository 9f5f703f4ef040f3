"""A training step over the ranks of a split graph, captured as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed

from accelviz.errors import ArgumentError
from accelviz.files import written_whole
from accelviz.torch.split import SplitGraph

#: Steps that run before the capture of a CUDA graph.
_WARMUP = 3


class TrainingStep:
    """A training step over all ranks: forward, backward, sum of the gradients, optimizer.

    On GPUs the step is captured as a CUDA graph after three calls, and replayed in later calls. The
    parameters and buffers of all ranks are set to those of rank 0, so that ranks may have different
    seeds, as dropout needs.

    Parameters
    ----------
    graph : SplitGraph
    model : torch.nn.Module
        On the graph's device, with parameters of one floating-point type.
    optimizer : torch.optim.Optimizer
        Of the model's parameters. Load its state before the first call.
    loss : callable
        Returns this rank's share of the loss: a sum over own nodes divided by the number of all
        training nodes. To be captured it must not wait for the GPU, and must read inputs from the
        same tensors in all calls.
    capture : bool
        Whether to capture the step on a GPU.

    Attributes
    ----------
    steps : int
        Number of steps taken, those before a checkpoint included.

    Raises
    ------
    ArgumentError
        If parameters have several types or devices, or the rank is idle.

    Examples
    --------
    >>> from accelviz.torch import GCNConv, SplitGraph
    >>> graph = SplitGraph("cora", device="cpu")
    >>> x, model = torch.ones(graph.n_own, 8), GCNConv(8, 4)
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> step = TrainingStep(graph, model, optimizer, lambda: model(x, graph).square().mean())
    >>> float(step()) > float(step())
    True
    """

    def __init__(
        self,
        graph: SplitGraph,
        model: Any,
        optimizer: Any,
        loss: Callable[[], Any],
        *,
        capture: bool = True,
    ) -> None:
        if graph.is_idle:
            raise ArgumentError("graph", f"rank {graph.rank} is idle", "a rank with nodes: end it")
        self.graph, self.model, self.optimizer, self._loss = graph, model, optimizer, loss
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        kinds = {(parameter.dtype, str(parameter.device)) for parameter in self._parameters}
        if kinds != {(self._parameters[0].dtype, str(graph.device))} if kinds else True:
            problem = ", ".join(f"{dtype} on {device}" for dtype, device in sorted(kinds, key=str))
            expected = f"parameters of one type on {graph.device}"
            raise ArgumentError("model", problem or "no parameters", expected)
        sizes = [parameter.numel() for parameter in self._parameters]
        # Gradients and the loss in one tensor, for one sum over the ranks.
        self._sums = self._parameters[0].new_zeros(sum(sizes) + 1)
        self._gradients = [
            piece.view_as(parameter)
            for piece, parameter in zip(
                self._sums.split([*sizes, 1]), self._parameters, strict=False
            )
        ]
        self._stream = None
        if capture and graph.device.type == "cuda":
            self._stream = torch.cuda.Stream()
            self._set_capturable()
        self._captured: Any = None
        self._calls = self.steps = 0
        if graph.size > 1:
            for tensor in [*model.parameters(), *model.buffers()]:
                distributed.broadcast(tensor.detach(), graph.global_rank(0), group=graph.group)

    def __call__(self) -> Any:
        """Take a step.

        Returns
        -------
        tensor of one element
            Loss before the step, of all ranks. The next step overwrites it.
        """
        if self._stream is None:
            self._step()
        elif self._calls < _WARMUP:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._step()
            torch.cuda.current_stream().wait_stream(self._stream)
        else:
            if self._captured is None:
                self._captured = self._capture()
            self._captured.replay()
        self._calls += 1
        self.steps += 1
        return self._sums[-1]

    def save(self, path: Any) -> None:
        """Write a checkpoint: `state_dict` of model and optimizer, number of steps, random state.

        Rank 0 writes it, in place of an earlier file only once it is complete. The random state is
        that of a dropout of `SplitGraph.with_halo`.

        Parameters
        ----------
        path : path-like
        """
        if self.graph.rank == 0:
            state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            with written_whole(path) as file:
                random = self.graph.random_state
                torch.save({**state, "steps": self.steps, "random": random}, file)

    def load(self, path: Any) -> None:
        """Read a checkpoint, written on any number of devices; all ranks call it.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        ArgumentError
            If a step has been taken.
        """
        if self._calls:
            raise ArgumentError("path", f"loaded after {self._calls} steps", "before the first")
        state = torch.load(path, map_location=self.graph.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps = state["steps"]
        if state["random"] is not None:
            self.graph.random_state = state["random"]
        self._set_capturable()

    def _step(self) -> None:
        self._sums.zero_()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        loss = self._loss()
        loss.backward()
        self._sums[-1] = loss.detach()
        if self.graph.size > 1:
            distributed.all_reduce(self._sums, group=self.graph.group)
        self.optimizer.step()

    def _set_capturable(self) -> None:
        """Let the optimizer count steps where it can, with the state of any checkpoint."""
        is_captured = self._stream is not None
        for group in self.optimizer.param_groups:
            if "capturable" in group:
                group["capturable"] = is_captured
        for state in self.optimizer.state.values():
            if isinstance(state.get("step"), torch.Tensor):
                state["step"] = state["step"].to(self.graph.device if is_captured else "cpu")

    def _capture(self) -> Any:
        """Return the captured step."""
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, stream=self._stream, capture_error_mode="thread_local"):
            self._step()
        return captured
