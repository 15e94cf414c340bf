"""Code that tests share: random inputs, files, commands, records."""
