"""What the shell commands do, each in a few lines over the library; a file per part of the flow."""
