"""The machine that executes PTX: memories, warps, barriers, asynchronous units, schedules."""
