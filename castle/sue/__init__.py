"""SUE: a Socratic review of chosen requirements, of how they can be read.

``method`` has operators and lenses, ``dialogue`` the state machine, ``answers`` the rules of an answer,
``questions`` and ``schema`` what is asked, ``review`` the loop; ``runs``, ``worker`` and ``status`` keep it
on disk, ``transports`` reaches a model.
"""
