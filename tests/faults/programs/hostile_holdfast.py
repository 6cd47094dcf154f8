"""The command line, with summaries that can be hostile: `python hostile_holdfast.py serve ...`."""

from holdfast.cli import main
from holdfast.computing import process

if __name__ == "__main__":
    process.JOB_MODULES = (*process.JOB_MODULES, "hostile_summaries")
    process.STALL_SECONDS = 3.0
    main()
