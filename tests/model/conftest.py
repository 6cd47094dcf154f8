"""A real language model, served on this machine over the protocol of OpenAI."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

SERVING = Path(__file__).parent / "serving.py"
PATIENCE = 120.0


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The base URL of the model. It answers one call at a time, with 4,096 tokens for prompt and answer together."""
    python = os.environ.get("MODEL_PYTHON")
    if not python:
        pytest.skip("no real model here: make test-model sets one up")
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([python, str(SERVING)], stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout
            late = Timer(PATIENCE, process.kill)
            late.start()
            url = process.stdout.readline().strip()
            late.cancel()
            if not url:
                errors.seek(0)
                pytest.fail(f"the model did not start: {errors.read().decode(errors='replace')[-2000:]}")
            yield f"{url}/v1"
        finally:
            process.kill()
            process.communicate()
