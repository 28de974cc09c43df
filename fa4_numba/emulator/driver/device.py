"""The device that libraries are told they have."""

SM_COUNT = 148  # of a B200
L2_BYTES = 126 << 20
