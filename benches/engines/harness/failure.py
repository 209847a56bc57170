"""Why the benchmark stops: one line of what is wrong, and where it is known, what to do."""


class BenchError(Exception):
    def __init__(self, message, hint=None):
        super().__init__(message)
        self.hint = hint
