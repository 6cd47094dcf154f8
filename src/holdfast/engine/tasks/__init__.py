"""Background tasks: the worker threads, a claimed task, failures and retries."""
