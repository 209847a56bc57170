"""The error of a lab command: message and hint."""


class LabError(Exception):
    """Expected trouble: a sentence for the person, and what they can do about it."""

    def __init__(self, message, hint=None):
        super().__init__(message)
        self.hint = hint
