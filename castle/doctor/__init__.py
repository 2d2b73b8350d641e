"""The doctor: what works and what does not, each line with the command that helps.

Nothing here changes anything but what a search would, too. Checks go by counts; `castle verify` is the proof.
"""

from castle.doctor.context import Context
from castle.doctor.examine import CHECKS, Check, Examination, examine
from castle.doctor.line import Line

__all__ = ["CHECKS", "Check", "Context", "Examination", "Line", "examine"]
