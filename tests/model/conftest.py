"""A fixture with a real language model behind a local server that is compatible with the OpenAI API."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

SERVING = Path(__file__).parent / "serving.py"
TIMEOUT_SECONDS = 120.0


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The base URL of the model. It handles one call at a time, with 4,096 tokens for prompt and answer together."""
    python = os.environ.get("MODEL_PYTHON")
    if not python:
        pytest.skip("there is no real model; run make test-model to set one up")
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([python, str(SERVING)], stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout
            kill_timer = Timer(TIMEOUT_SECONDS, process.kill)
            kill_timer.start()
            url = process.stdout.readline().strip()
            kill_timer.cancel()
            if not url:
                errors.seek(0)
                pytest.fail(f"the model did not start: {errors.read().decode(errors='replace')[-2000:]}")
            yield f"{url}/v1"
        finally:
            process.kill()
            process.communicate()
