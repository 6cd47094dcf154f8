"""A `summarise` that does what a message demands, as if its text were one that the summariser cannot handle."""

from typing import Any

from holdfast.computing.job import Job, JobContext
from holdfast.computing.summaries import SUMMARISE, MessagesToSummarise
from holdfast.model.summaries import Summary
from hostile_jobs import DEMANDS


def _summarise(input: MessagesToSummarise, context: JobContext) -> Summary:
    for message in input.messages:
        DEMANDS.get(message.text, lambda: None)()
    return SUMMARISE.run(input, context)


JOBS: list[Job[Any, Any]] = [Job[MessagesToSummarise, Summary]("summarise", _summarise, MessagesToSummarise, Summary)]
