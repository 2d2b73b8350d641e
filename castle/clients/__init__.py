"""The programs that use a palace: where each of them keeps its settings, and what Castle writes there.

Nothing here opens a palace. Files of other programs belong to their users: what is written is inserted into
the text and everything else stays byte for byte as it was.
"""
