"""The command line: demo, doctor, config, ptx, sass, emulate."""
