"""The study of what pooling is for: tasks, methods and their data, and what writes its page.

python -m paper pooling
"""

STUDY = "pooling"  # its name in the shell, and the folder of its lines
